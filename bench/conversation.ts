/** What the upstream answers: whole, or in 200 pieces. The client sends it back, as chat clients do. */
export const REPLY = filler(100, 1);
export const REPLY_PIECES: readonly string[] = Array.from({ length: 200 }, (_, index) => ` ${filler(4, index + 1)}`);

export interface Scenario {
  readonly name: string;
  /** Its window decides whether a request of this size has to be counted. */
  readonly model: string;
  readonly stream: boolean;
  /** Messages of the history that a conversation begins with, and the characters of each. */
  readonly messages: number;
  readonly messageChars: number;
  /** Each turn adds a user message of so many characters; after so many turns a new conversation begins. */
  readonly turnChars: number;
  readonly turns: number;
}

/** The request bodies of a scenario's conversations: every turn sends the whole history again and one message more. */
export interface Conversations {
  /** The body of a turn, counted from 0, of the conversation with this number; conversations differ from the first message on. */
  body(conversation: number, turn: number): Uint8Array;
}

const NUMBER_DIGITS = 8;

export function createConversations(scenario: Scenario): Conversations {
  const { model, stream, messages, messageChars, turnChars, turns } = scenario;
  const options = stream ? '"stream":true,"stream_options":{"include_usage":true},' : '';
  const head = `{"model":"${model}",${options}"messages":[{"role":"user","content":"`;
  const numbered = `${head}${'0'.repeat(NUMBER_DIGITS)} ${filler(messageChars, 7)}"}`;
  const reply = stream ? REPLY_PIECES.join('') : REPLY;
  const history = Array.from({ length: messages - 1 }, (_, index) =>
    said(index % 2 === 0 ? 'assistant' : 'user', filler(messageChars, index)),
  );
  // Ends in an assistant message, so that every turn can begin with a user's.
  const opening = [numbered, ...history, ...(messages % 2 === 0 ? [] : [said('assistant', reply)])];
  const added = Array.from({ length: turns }, (_, index) => [
    said('user', filler(turnChars, 1_000_000 + index)),
    said('assistant', reply),
  ]);
  const all = Buffer.from([...opening, ...added.flat()].join(','));
  const closing = Buffer.from(']}');
  const ends: number[] = [];
  let end = opening.join(',').length;
  for (const [asked = '', answered = ''] of added) {
    end += 1 + asked.length;
    ends.push(end);
    end += 1 + answered.length;
  }
  return {
    body(conversation, turn) {
      const body = Buffer.concat([all.subarray(0, ends[turn % turns]), closing]);
      body.write(String(conversation).padStart(NUMBER_DIGITS, '0'), head.length, 'latin1');
      return body;
    },
  };
}

function said(role: 'user' | 'assistant', content: string): string {
  return JSON.stringify({ role, content });
}

/** Plain English of about this length, the same for the same seed: as many tokens as prose has, no line like another. */
function filler(chars: number, seed: number): string {
  const words =
    'the harbour road was open again and nobody had told them why second warning came so late that evening'.split(' ');
  let state = (seed * 2_654_435_761) >>> 0;
  let text = '';
  while (text.length < chars) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += `${words[(state >>> 16) % words.length] ?? ''} `;
  }
  return text.slice(0, chars).trimEnd();
}
