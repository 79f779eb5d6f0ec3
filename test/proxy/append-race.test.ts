import { expect, it } from 'vitest';
import { createWorld } from '../support/in-memory.js';

const thin = { 'x-spillway-conversation': 'shared', 'x-spillway-append': 'true' };
const saying = (content: string) => ({ model: 'm', messages: [{ role: 'user', content }] });

function start() {
  const world = createWorld({ windowTokens: null, send: () => Promise.reject(new Error('nothing is sent')) });
  const { ledger } = world;
  /** Lets something happen, once, after a request has read what it looks for and before it acts on that. */
  const after = (name: 'spine' | 'conversation', happens: () => Promise<unknown>): void => {
    const original = ledger[name].bind(ledger) as (...given: unknown[]) => Promise<unknown>;
    const interrupted = async (...given: unknown[]): Promise<unknown> => {
      const answer = await original(...given);
      Object.assign(ledger, { [name]: original });
      await happens();
      return answer;
    };
    Object.assign(ledger, { [name]: interrupted });
  };
  return { ...world, after };
}

const overtaken = { code: 'head_moved', field: 'x-spillway-append' };

it('an append is refused if another process appended since it read where HEAD is, SPEC 1.6', async () => {
  const { open, ledger, after } = start();
  const first = await open(saying('One'), thin);
  after('spine', () => open(saying('Theirs'), { ...thin, 'x-spillway-predecessor': first.opened.head }));
  await expect(open(saying('Mine'), thin)).rejects.toMatchObject(overtaken);
  expect((await ledger.nodes(first.conversation, 0, 10)).length).toBe(2);
  // Sent again it follows what came between.
  expect((await open(saying('Mine'), thin)).spine.map((node) => node.message.text)).toEqual(['One', 'Theirs', 'Mine']);
});

it('the first append too, if another process began the conversation meanwhile', async () => {
  const { open, ledger, after } = start();
  after('conversation', () => open(saying('Theirs'), thin));
  await expect(open(saying('Mine'), thin)).rejects.toMatchObject(overtaken);
  const [only, ...more] = await ledger.list(null, 10, null);
  expect(more).toEqual([]);
  expect(only).toMatchObject({ nodes: 1 });
});

it('an append to a named node, and a full history, go where they say wherever HEAD is', async () => {
  const { open, after } = start();
  const first = await open(saying('One'), thin);
  const predecessor = { ...thin, 'x-spillway-predecessor': first.opened.head };
  after('spine', () => open(saying('Theirs'), predecessor));
  expect((await open(saying('Mine'), predecessor)).spine.length).toBe(2);
  const whole = { model: 'm', messages: [...saying('One').messages, ...saying('Again').messages] };
  expect((await open(whole, { 'x-spillway-conversation': 'shared' })).spine.length).toBe(2);
});
