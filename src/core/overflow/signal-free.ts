/** Words of errors that name no cause. */
const EMPTY_WORDS: ReadonlySet<string> = new Set(
  (
    'a again an and any api are argument arguments at bad be been body but by cannot client code codes could ' +
    'detail details due encountered error errors exception failed failure false following for from generic ' +
    'got had has have http https in internal invalid is issue it json later message model no none not null ' +
    'object occurred of on or our parameter parameters params please process processed provider request ' +
    'requests response returned server service something sorry specified status submit that the there this to ' +
    'true try type unable unexpected unknown upstream validation was we went were when while with wrong you ' +
    'your'
  ).split(' '),
);

/** Words that sentences about a request's size begin with. */
const SIZE_WORDS: ReadonlySet<string> = new Set(
  (
    'about at context conversation count current endpoint estimated exceed exceeds first have history input ' +
    'inputs keep length maximum messages model number output prompt requested resulted s sequence size sum ' +
    'token tokens too total truncate trying'
  ).split(' '),
);

/** Whether a text tells nothing of what was wrong: status numbers, exception names and "bad request" in any wording. */
export function saysNothing(text: string): boolean {
  return wordsOf(text)?.every((word) => EMPTY_WORDS.has(word) || /^\d{1,3}$/.test(word)) ?? false;
}

/** Whether a text tells nothing, or only begins to tell of a size: no field, file, tool or value is named. */
export function namesNothing(text: string): boolean {
  return wordsOf(text)?.every((word) => EMPTY_WORDS.has(word) || SIZE_WORDS.has(word) || /^\d+k?$/.test(word)) ?? false;
}

/** Null for a text too long to say nothing. Of `litellm.BadRequestError` only the fact of an error remains. */
function wordsOf(text: string): readonly string[] | null {
  if (text.length > 1_000) return null;
  return (
    text
      .toLowerCase()
      .replace(/\b[\w.]{0,80}(?:error|exception)s?\b/g, ' ')
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
