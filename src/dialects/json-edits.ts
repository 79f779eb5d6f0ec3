import { memberSpans, type Span } from './json-spans.js';

/** A span of a text and what stands there instead. */
export interface Edit extends Span {
  readonly text: string;
}

/** The text with every edit made; what lies between them are its very characters. Edits must not overlap. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  let result = '';
  let at = 0;
  for (const edit of [...edits].toSorted((a, b) => a.start - b.start)) {
    result += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return result + text.slice(at);
}

/** The object in `text`, which has a member at least, with one member's value replaced by `value`, or the member added. */
export function withMember(text: string, name: string, value: string): string {
  const members = memberSpans(text);
  const span = members.get(name);
  if (span !== undefined) return applyEdits(text, [{ ...span, text: value }]);
  const end = Math.max(...[...members.values()].map((member) => member.end));
  return applyEdits(text, [{ start: end, end, text: `,${JSON.stringify(name)}:${value}` }]);
}

/** The parsed value of a span; undefined where there is none. */
export function valueAt(text: string, span: Span | undefined): unknown {
  return span === undefined ? undefined : JSON.parse(text.slice(span.start, span.end));
}

/** The object in `text` without a member, however often it stands there, and without the comma beside it. */
export function withoutMember(text: string, name: string): string {
  const members = memberSpans(text);
  const span = members.get(name);
  if (span === undefined) return text;
  const before = Math.max(0, ...[...members.values()].map(({ end }) => (end < span.start ? end : 0)));
  // The first member ends with its comma, any other begins with one.
  const edit =
    before > 0
      ? { start: before, end: span.end, text: '' }
      : {
          start: text.indexOf('{') + 1,
          end: span.end + (/^\s*,/.exec(text.slice(span.end))?.[0].length ?? 0),
          text: '',
        };
  return withoutMember(applyEdits(text, [edit]), name);
}
