import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import type { WireItem } from '../../src/dialects/dialect.js';

const plain = { askForUsage: false, alternate: false };
const content = '[Previous conversation summary]\nWe chose port 9090.';
const summary: WireItem = { kind: 'summary', content };
const kept = (index: number): WireItem => ({ kind: 'kept', index });

const first = '{ "role":"user",\n  "content" : "caf\\u00e9 \\/ 🙂", "vendor": 12345678901234567890, "name":"ann" }';
const second = '{"content":[{"type":"text","text":"a","n":1.0}],"role":"user"}';
const third =
  '{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"big\\": 1e400"}}]}';
const body = `\n{"model" : "m", "seed": 1.0, "messages" : [\n ${first},\n ${second} , ${third}\n ],\t"logit_bias":{"50256":-100} , "stream": true }\n`;

describe('a rewritten request, SPEC 4.3', () => {
  test('kept messages and all other fields are the very characters that came in', () => {
    const written = chatCompletions.write(body, [kept(2), kept(0)], plain);
    const before = body.slice(0, body.indexOf('[\n'));
    const after = body.slice(body.indexOf('],\t') + 1);
    expect(written).toBe(`${before}[${third},${first}]${after}`);
  });

  test('a stored message is its JSON, a summary its message, the same bytes each time, SPEC 4.5', () => {
    const source = { role: 'user', content: 'from the ledger' };
    const items: WireItem[] = [summary, { kind: 'stored', source }, kept(1)];
    const written = chatCompletions.write(body, items, plain);
    expect(JSON.parse(written).messages).toEqual([
      chatCompletions.summaryMessage(content).source,
      source,
      JSON.parse(second),
    ]);
    expect(chatCompletions.write(body, items, plain)).toBe(written);
  });

  test('of a repeated field the last one is rewritten, as it is the one that was read', () => {
    const text = '{"messages":[{"role":"user","content":"old"}],"messages":[{"role":"user","content":"new"},7]}';
    expect(chatCompletions.write(text, [kept(0)], plain)).toBe(
      '{"messages":[{"role":"user","content":"old"}],"messages":[{"role":"user","content":"new"}]}',
    );
  });

  test('an index that the request does not have is a defect and throws', () => {
    expect(() => chatCompletions.write(body, [kept(3)], plain)).toThrow(RangeError);
    expect(() => chatCompletions.write('{"model":"m"}', [], plain)).toThrow(RangeError);
  });

  test('whatever the body, only the message list differs and each kept message is deep-equal', () => {
    const messages = fc.array(
      fc.record({
        role: fc.constantFrom('user', 'assistant'),
        content: fc.string({ unit: 'binary' }),
        extra: fc.jsonValue(),
      }),
      { minLength: 1, maxLength: 6 },
    );
    const request = fc.record({ model: fc.string(), messages, tools: fc.jsonValue(), n: fc.double() });
    fc.assert(
      fc.property(request, fc.nat({ max: 4 }), fc.array(fc.nat()), (value, indent, picks) => {
        const text = JSON.stringify(value, null, indent);
        const original = JSON.parse(text);
        const indexes = picks.map((pick) => pick % original.messages.length);
        const written = chatCompletions.write(text, [summary, ...indexes.map(kept)], plain);
        expect(JSON.parse(written)).toEqual({
          ...original,
          messages: [
            chatCompletions.summaryMessage(content).source,
            ...indexes.map((index) => original.messages[index]),
          ],
        });
      }),
    );
  });
});

describe('asking a stream for usage', () => {
  const ask = (fields: string): string =>
    chatCompletions.write(`{"messages":[{"role":"user","content":"x"}]${fields}}`, [kept(0)], {
      askForUsage: true,
      alternate: false,
    });
  const asked = (fields: string): string => `{"messages":[{"role":"user","content":"x"}]${fields}}`;

  test.each([
    ['absent options', ',"stream":true , "a":1 ', ',"stream":true , "a":1,"stream_options":{"include_usage":true} '],
    ['null options', ',"stream":true,"stream_options":null', ',"stream":true,"stream_options":{"include_usage":true}'],
    ['empty options', ',"stream":true,"stream_options":{ }', ',"stream":true,"stream_options":{"include_usage":true}'],
    [
      'other options',
      ',"stream_options":{ "x": 1.0 },"stream":true',
      ',"stream_options":{ "x": 1.0,"include_usage":true },"stream":true',
    ],
    [
      'a refusal of it',
      ',"stream_options":{"include_usage": false, "x":1},"stream":true',
      ',"stream_options":{"include_usage": true, "x":1},"stream":true',
    ],
  ])('adds it to %s and keeps every other character', (_name, before, after) => {
    expect(ask(before)).toBe(asked(after));
  });

  test.each([
    ['no stream', ''],
    ['a stream switched off', ',"stream":false'],
    ['a stream that asked already', ',"stream":true,"stream_options":{"include_usage":true}'],
    ['options of a wrong type', ',"stream":true,"stream_options":[1]'],
  ])('changes nothing for %s', (_name, fields) => {
    expect(ask(fields)).toBe(asked(fields));
  });
});

describe('where the upstream insists on alternation, SPEC 4.4', () => {
  const alternate = { askForUsage: false, alternate: true };
  const frame = chatCompletions.summaryMessage(content).text;
  const messages = (items: readonly WireItem[]): unknown =>
    JSON.parse(chatCompletions.write(body, items, alternate)).messages;

  test('a summary and the user message after it are one; its other members keep their characters', () => {
    const written = chatCompletions.write(body, [summary, kept(0), kept(2)], alternate);
    const head = JSON.stringify(`${frame}\n\n`).slice(0, -1);
    expect(written).toContain(`[${first.replace('"caf', `${head}caf`)},${third}]`);
    expect(JSON.parse(written).messages[0].content).toBe(`${frame}\n\ncafé / 🙂`);
  });

  test('parts get one more part in front, and stay as they were', () => {
    expect(chatCompletions.write(body, [summary, kept(1)], alternate)).toContain(
      `[{"content":[${JSON.stringify({ type: 'text', text: frame })},{"type":"text","text":"a","n":1.0}],"role":"user"}]`,
    );
  });

  test('a stored user message is joined too, one of another role is not', () => {
    expect(messages([summary, { kind: 'stored', source: { role: 'user', content: [] } }])).toEqual([
      { role: 'user', content: [{ type: 'text', text: frame }] },
    ]);
    expect(messages([summary, kept(2)])).toEqual([{ role: 'user', content: frame }, JSON.parse(third)]);
    expect(messages([summary, { kind: 'stored', source: { role: 'user', content: null } }])).toHaveLength(2);
  });

  test('messages of the client’s own in a row stay apart, and so does what is not a user’s', () => {
    expect(messages([kept(0), kept(1)])).toEqual([JSON.parse(first), JSON.parse(second)]);
    expect(messages([summary, kept(2), summary])).toHaveLength(3);
  });

  const work: WireItem = { kind: 'summary', content: '[Work done so far]\nThe port was free.' };
  const workFrame = chatCompletions.summaryMessage('[Work done so far]\nThe port was free.').text;

  test('what stands behind a user message is a part of it, whose other members stay', () => {
    const written = chatCompletions.write(body, [kept(0), work, kept(2)], alternate);
    const tail = JSON.stringify(`\n\n${workFrame}`).slice(1);
    expect(written).toContain(`[${first.replace('🙂"', `🙂${tail}`)},${third}]`);
    expect(messages([kept(1), work])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a', n: 1 },
          { type: 'text', text: workFrame },
        ],
      },
    ]);
  });

  test('a summary, a question, checkpoints and the next question are one message in their order', () => {
    expect(messages([summary, kept(0), work, work, kept(2)])).toEqual([
      { ...JSON.parse(first), content: [frame, 'café / 🙂', workFrame, workFrame].join('\n\n') },
      JSON.parse(third),
    ]);
    expect(messages([summary, kept(0), work, kept(1)])).toEqual([
      {
        ...JSON.parse(first),
        content: [
          { type: 'text', text: frame },
          { type: 'text', text: 'café / 🙂' },
          { type: 'text', text: workFrame },
          { type: 'text', text: 'a', n: 1 },
        ],
      },
    ]);
  });

  test('user messages in a row are one if any of them is a substitute, in every order, and none is lost', () => {
    const item = fc.constantFrom<WireItem>(summary, work, kept(0), kept(1), kept(2));
    fc.assert(
      fc.property(fc.array(item, { maxLength: 10 }), (items) => {
        // S: a substitute, u: a user message, a: any other.
        const letters = items.map((one) =>
          one.kind === 'summary' ? 'S' : one.kind === 'kept' && one.index < 2 ? 'u' : 'a',
        );
        const runs = letters.join('').match(/[Su]+|a/g) ?? [];
        const written = messages(items) as { content: unknown }[];
        expect(written).toHaveLength(runs.reduce((sum, run) => sum + (run.includes('S') ? 1 : run.length), 0));
        const text = JSON.stringify(written);
        const places = [...text.matchAll(/We chose port|The port was free|café|"a"/g)].map(([found]) => found);
        const told = new Map<WireItem, string>([
          [summary, 'We chose port'],
          [work, 'The port was free'],
        ]);
        const said = ['café', '"a"'];
        expect(places).toEqual(
          items.flatMap((one) => told.get(one) ?? (one.kind === 'kept' ? (said[one.index] ?? []) : [])),
        );
      }),
    );
  });
});
