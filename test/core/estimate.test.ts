import { expect, it } from 'vitest';
import { estimateView, messageTokens } from '../../src/core/estimate.js';
import { render } from '../../src/core/render.js';
import {
  assistant,
  call,
  image,
  letterRuler,
  letters,
  message,
  result,
  spineOf,
  summaryOf,
  system,
  user,
} from './builders.js';

it('a message costs its text and a frame', () => {
  const frame = messageTokens(user(''), letters);
  expect(frame).toBeGreaterThan(0);
  expect(messageTokens(user('12345'), letters)).toBe(frame + 5);
});

it('all that is on the wire is counted: name, calls with their arguments, results, echoed reasoning, media', () => {
  const cost = (part: Parameters<typeof message>[0]): number =>
    messageTokens(message(part), letters) - messageTokens(message({ role: part.role }), letters);
  expect(cost({ role: 'user', name: 'Ada' })).toBeGreaterThanOrEqual(3);
  expect(cost({ role: 'llm', calls: [call('a', '12345678')] })).toBeGreaterThanOrEqual('look'.length + 8);
  expect(cost({ role: 'tool', results: result('a', '12345678').results })).toBeGreaterThanOrEqual(8);
  expect(cost({ role: 'llm', reasoning: '12345678' })).toBe(8);
  expect(cost({ role: 'user', media: [image('A'.repeat(10_000)), image('')] })).toBe(20);
});

it('a view costs its fixed part, pinned messages, summary and tail, and what primes the reply (SPEC 5.1)', () => {
  const spine = spineOf([user('12'), system('1234'), assistant('12'), user('123456'), assistant('12345')]);
  const ruler = letterRuler(spine, 100);
  const raw = estimateView(render(spine, null), ruler);
  const empty = estimateView(render([], null), ruler);
  expect(raw - empty).toBe(2 + 4 + 2 + 6 + 5);
  const compacted = estimateView(render(spine, summaryOf(spine, 3)), ruler);
  expect(compacted - empty).toBe(4 + ruler.summaryTokens('record') + 6 + 5);
});
