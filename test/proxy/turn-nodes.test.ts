import { describe, expect, it } from 'vitest';
import type { Message } from '../../src/core/message.js';
import type { SpineNode } from '../../src/core/render.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { chainNodeBuilder } from '../../src/proxy/turn-nodes.js';

function read(source: unknown): Message {
  const message = chatCompletions.readMessage(source);
  if (message === null) throw new Error('unreadable');
  return message;
}

const user = (content: string) => read({ role: 'user', content });
const calls = (...ids: readonly string[]) =>
  read({
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
  });
const result = (id: string) => read({ role: 'tool', tool_call_id: id, content: 'Done.' });

const spineOf = (messages: readonly Message[]): readonly SpineNode[] =>
  messages.map((message, index) => ({ id: `node${index}`, message, command: false }));

/** Callers of the nodes of a spine from `known` on, built in order as a store asks for them. */
function callersOf(messages: readonly Message[], known = 0, spawner: string | null = null): readonly (string | null)[] {
  const spine = spineOf(messages);
  const build = chainNodeBuilder(spine, spawner);
  return spine.slice(known).map((_, index) => build(known + index).caller);
}

describe('the caller of a tool result', () => {
  it('is the assistant node that called it, and nothing else has one (SPEC 2.2)', () => {
    const spine = [user('Look'), calls('a', 'b'), result('b'), result('a'), calls('c'), result('c'), user('Thanks')];
    expect(callersOf(spine)).toEqual([null, null, 'node1', 'node1', null, 'node4', null]);
  });

  it('is the latest one before it where a client counts its ids anew: never the first, never a later one (SPEC 2.2)', () => {
    const spine = [user('Look'), calls('a'), result('a'), calls('a'), result('a'), result('a'), calls('a')];
    expect(callersOf(spine)).toEqual([null, null, 'node1', null, 'node3', 'node3', null]);
  });

  it('is found behind what the store has already, and is null where nobody called', () => {
    const spine = [user('Look'), calls('a'), result('a'), calls('b'), result('b'), result('lost')];
    expect(callersOf(spine, 4)).toEqual(['node3', null]);
    expect(callersOf(spine, 2)).toEqual(['node1', null, 'node3', null]);
  });

  it('wins over the node that spawned the branch, which calls only the first new one (SPEC 2.2)', () => {
    expect(callersOf([user('Look'), user('Else')], 0, 'spawner')).toEqual(['spawner', null]);
    expect(callersOf([calls('a'), result('a'), user('Go on')], 1, 'spawner')).toEqual(['node0', null]);
  });

  it('is found by looking at each message once, however long the loop and whatever ids repeat in it', () => {
    let looks = 0;
    const counted = (message: Message): Message =>
      Object.defineProperty({ ...message }, 'calls', {
        get() {
          looks++;
          return message.calls;
        },
      });
    const loop = Array.from({ length: 2_000 }, (_, index) => {
      const id = `call_${index % 7}`;
      return [counted(calls(id)), counted(result(id))];
    }).flat();
    const callers = callersOf(loop);
    expect(callers.every((caller, index) => caller === (index % 2 === 1 ? `node${index - 1}` : null))).toBe(true);
    expect(looks).toBeLessThanOrEqual(loop.length);
  });
});
