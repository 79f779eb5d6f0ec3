import { describe, expect, it } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { createMeasure } from '../../src/proxy/measure.js';
import type { PatientCounter } from '../../src/tokens/counter.js';

const TOOLS = [{ type: 'function', function: { name: 'read', parameters: {} } }];
const read = chatCompletions.read({
  model: 'm',
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'covered' },
    { role: 'assistant', content: 'stored' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'a result' },
    { role: 'user', content: 'new' },
  ],
  tools: TOOLS,
});

/** A counter of one token a character, and what it was given to count ahead and counted without. */
function createSpy() {
  const ahead: string[] = [];
  const late: string[] = [];
  const count = (text: string): number => text.length;
  const rest = { tokenizer: 't', countMedia: () => 0 };
  const counter: PatientCounter = {
    ...rest,
    count,
    ahead(given) {
      ahead.push(...given);
      const known = new Set(ahead);
      return Promise.resolve({
        ...rest,
        count(text) {
          if (!known.has(text)) late.push(text);
          return count(text);
        },
      });
    },
  };
  return { counter, ahead, late };
}

function measured() {
  if (read === null) throw new Error('unreadable');
  const spy = createSpy();
  const spine = read.messages.map((message, index) => ({ id: `n${index}`, message, command: false }));
  const measure = createMeasure({
    dialect: chatCompletions,
    read,
    spine,
    stored: new Map([['n1', 77]]),
    viewStart: 1,
    loadCounter: () => Promise.resolve(spy.counter),
  });
  return { measure, ...spy };
}

describe('the measure of a turn', () => {
  it('loads no tokenizer until somebody has to know, SPEC 7.9', () => {
    const { measure, ahead } = measured();
    expect(measure.bound(1_000)).toBe(1_000);
    expect(measure.tokenizer()).toBeNull();
    expect(ahead).toEqual([]);
  });

  it('has all that a view needs counted ahead, so that no long text is counted at a stretch', async () => {
    const { measure, ahead, late } = measured();
    const ruler = await measure.ruler();
    const tokens = [1, 2, 3, 4].map((index) => ruler.tokensAt(index));
    expect(tokens[0]).toBe(77);
    expect(ruler.fixedTokens).toBeGreaterThan('Be brief.'.length + JSON.stringify(TOOLS).length);
    expect(ahead).toEqual(expect.arrayContaining(['Be brief.', 'f', '{}', 'a result', 'new']));
    expect(ahead.join()).toContain('"read"');
    expect(late).toEqual([]);
  });

  it('counts neither what a summary covers nor what is stored, and tells what was counted anew', async () => {
    const { measure, ahead } = measured();
    const ruler = await measure.ruler();
    ruler.tokensAt(1);
    ruler.tokensAt(4);
    expect(ahead).not.toContain('covered');
    expect(ahead).not.toContain('stored');
    expect([...measure.freshCounts()]).toEqual([['n4', 4 + 'new'.length]]);
  });

  it('still knows what is asked for all the same', async () => {
    const { measure, late } = measured();
    const ruler = await measure.ruler();
    expect(ruler.tokensAt(0)).toBe(4 + 'covered'.length);
    expect(late).toEqual(['covered']);
  });
});
