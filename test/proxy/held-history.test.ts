import { describe, expect, it } from 'vitest';
import { credentialOf } from '../../src/proxy/credential.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';

interface Answer {
  readonly id: string;
  readonly output: readonly { readonly id: string; readonly type: string }[];
}

async function respond(pair: StartedPair, input: unknown, more: object = {}) {
  const response = await fetch(`${pair.spillway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'any', reasoning: { effort: 'low' }, input, ...more }),
  });
  const told = (name: string): string => response.headers.get(`x-spillway-${name}`) ?? '';
  return { status: response.status, told, answer: (await response.json()) as Answer };
}

const nodesOf = async (pair: StartedPair, id: string): Promise<readonly { role: string; predecessor: string }[]> =>
  ((await pair.api(`/conversations/${id}/nodes`)) as { data: { role: string; predecessor: string }[] }).data;

describe('a history that the upstream holds, SPEC 1.7', () => {
  it('named item by item is one chain: reasoning and what follows it are one message', async () => {
    const pair = await startPair();
    const first = await respond(pair, [{ role: 'user', content: 'One' }]);
    expect(first.answer.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
    const references = first.answer.output.map(({ id }) => ({ type: 'item_reference', id }));
    const second = await respond(pair, [
      { role: 'user', content: 'One' },
      ...references,
      { role: 'user', content: 'Two' },
    ]);
    expect(second.status).toBe(200);
    expect(second.told('conversation')).toBe(first.told('conversation'));
    const nodes = await nodesOf(pair, first.told('conversation'));
    expect(nodes.map(({ role }) => role)).toEqual(['user', 'llm', 'user', 'llm']);
    expect(new Set(nodes.map(({ predecessor }) => predecessor)).size).toBe(4);
  });

  it('of a conversation that was deleted is not known any more: the request passes as it came', async () => {
    const pair = await startPair();
    const first = await respond(pair, 'One');
    const id = first.told('conversation');
    const url = `${pair.spillway.url}/spillway/v1/conversations/${id}`;
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(204);
    const second = await respond(pair, 'Two', { previous_response_id: first.answer.id });
    expect([second.status, second.told('action'), second.told('conversation')]).toEqual([200, 'unread', '']);
  });
});

it('a signed-in person’s token goes along with the name of its feature alone', () => {
  const headers = { authorization: 'Bearer t', 'anthropic-beta': 'context-1m, oauth-2025-04-20', 'x-other': '1' };
  expect(credentialOf(headers)).toEqual({ authorization: 'Bearer t', 'anthropic-beta': 'oauth-2025-04-20' });
});
