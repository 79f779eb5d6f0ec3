import { hash as digestOf } from 'node:crypto';
import { chainIds } from '../../src/core/canonical.js';
import type { Ruler } from '../../src/core/estimate.js';
import type { Media, Message, ToolCall } from '../../src/core/message.js';
import type { Hash, Summary, TokenCounter } from '../../src/core/ports.js';
import type { SpineNode, SubstituteForms } from '../../src/core/render.js';

export function message(part: Partial<Message> & Pick<Message, 'role'>): Message {
  const empty = { text: '', name: null, calls: [], results: [], media: [], reasoning: '', signed: false, source: null };
  return { ...empty, ...part };
}

export const user = (text: string): Message => message({ role: 'user', text });
export const system = (text: string): Message => message({ role: 'system', text });
export const assistant = (text: string): Message => message({ role: 'llm', text });

/** An assistant message that calls one tool for each id. */
export const calling = (...ids: readonly string[]): Message =>
  message({ role: 'llm', calls: ids.map((id) => call(id)) });

export function call(id: string, args = '{}'): ToolCall {
  return { id, name: 'look', arguments: args };
}

export function result(callId: string, text = 'seen'): Message {
  return message({ role: 'tool', results: [{ callId, text }] });
}

export function image(data: string, name: string | null = null): Media {
  return { kind: 'image', inline: true, data, mimeType: 'image/png', name, detail: null };
}

/** A turn that is over: asked and answered. */
export const turn = (text: string): readonly Message[] => [user(`${text}?`), assistant(`${text}.`)];

export const hash: Hash = (text) => digestOf('sha256', text, 'base64url').slice(0, 32);

export function spineOf(messages: readonly Message[]): readonly SpineNode[] {
  const ids = chainIds(hash, 'root', messages);
  return messages.map((each, index) => ({ id: ids[index] ?? '', message: each, command: false }));
}

/** A summary of the first `count` nodes of a spine. */
export function summaryOf(spine: readonly SpineNode[], count: number, id = 'summary_1', content = 'record'): Summary {
  const first = spine[0]?.id ?? '';
  const last = spine[count - 1]?.id ?? '';
  return { id, first, last, count, content, tokens: null, tokenizer: null };
}

/** One token a character, ten for each part that is not text. */
export const letters: TokenCounter = { tokenizer: 'letters', count: (text) => text.length, countMedia: () => 10 };

/** What a summary is sent as in these tests. */
export const summaryMessage = (content: string): Message => user(`<record>${content}</record>`);

/** A dialect as plain as can be. */
export const forms: SubstituteForms = {
  summaryMessage,
  withResults: (given, results) => ({
    ...given,
    results: given.results.map((one) => ({ ...one, text: results.get(one.callId) ?? one.text })),
  }),
};

/** A ruler that counts the letters of texts, results and arguments and nothing else. */
export function letterRuler(spine: readonly SpineNode[], fixedTokens = 0): Ruler {
  return {
    fixedTokens,
    tokensAt: (index) => lettersOf(spine[index]?.message),
    summaryTokens: (content) => lettersOf(summaryMessage(content)),
  };
}

function lettersOf(each: Message | undefined): number {
  if (each === undefined) return 0;
  const said = [each.text, ...each.calls.map((one) => one.arguments), ...each.results.map((one) => one.text)];
  return said.reduce((sum, text) => sum + text.length, 0);
}
