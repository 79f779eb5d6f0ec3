import Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { say } from '../../src/simulator/reply-plan.js';
import { padding } from '../support/chat.js';
import { sendRaw } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { nodesOf, onlyConversation } from '../support/stored.js';

const openai = (pair: StartedPair): OpenAI => pair.client();
const anthropic = (pair: StartedPair): Anthropic =>
  new Anthropic({ baseURL: pair.spillway.url, apiKey: 'sk-ant-test', maxRetries: 0 });

describe('a client of responses', () => {
  it('is told where its messages are, and in which conversation', async () => {
    const pair = await startPair({}, { script: () => say('Aye.') });
    const { data, response } = await openai(pair).responses.create({ model: 'm', input: 'Hello' }).withResponse();
    const conversation = await onlyConversation(pair);
    expect(data.output_text).toBe('Aye.');
    expect(response.headers.get('x-spillway-conversation')).toBe(conversation.id);
    const [user, reply] = await nodesOf(pair, conversation.id);
    expect(response.headers.get('x-spillway-head')).toBe(reply?.id);
    expect(reply).toMatchObject({ predecessor: user?.id, role: 'llm' });
    expect(response.headers.get('x-spillway-action')).toBe('none');
    const next = await openai(pair)
      .responses.create({ model: 'm', input: 'And?', previous_response_id: data.id })
      .withResponse();
    expect(next.response.headers.get('x-spillway-conversation')).toBe(conversation.id);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 4, calls: 2 });
  });

  it('fetches and deletes at the provider what the provider stored', async () => {
    const pair = await startPair({}, { script: () => say('Aye.') });
    const { responses } = openai(pair);
    const { id } = await responses.create({ model: 'm', input: 'Hello' });
    expect(await responses.retrieve(id)).toMatchObject({ id, output_text: 'Aye.' });
    await responses.delete(id);
    await expect(responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
    const routes = pair.simulator.requests.map(({ method, path }) => `${method} ${path}`);
    expect(routes.slice(1)).toEqual([
      `GET /v1/responses/${id}`,
      `DELETE /v1/responses/${id}`,
      `GET /v1/responses/${id}`,
    ]);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 2, calls: 1 });
  });

  it('that tries a websocket first is told at once to go without, and the provider hears nothing of it', async () => {
    const pair = await startPair();
    const answer = await sendRaw(pair.spillway.url, '/v1/responses', {
      method: 'GET',
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        authorization: 'Bearer sk-test',
      },
    }).answer;
    expect(answer.status).toBe(426);
    expect(pair.simulator.requests).toEqual([]);
  });
});

describe('a client of messages', () => {
  it('has its tokens counted by the provider, and nothing is recorded for it', async () => {
    const pair = await startPair();
    const { messages } = anthropic(pair);
    const body = { model: 'm', messages: [{ role: 'user' as const, content: padding('Count this', 200) }] };
    const { input_tokens: tokens } = await messages.countTokens(body);
    expect(tokens).toBeGreaterThan(200);
    expect(pair.simulator.requests.map(({ path }) => path)).toEqual(['/v1/messages/count_tokens']);
    expect((await pair.api('/conversations'))['data']).toEqual([]);
  });

  it.each([
    ['its own version', { 'anthropic-version': '2026-10-21' }, '2026-10-21'],
    ['one where it has none', {}, '2023-06-01'],
  ])(
    'has summaries asked for with %s and its own key, and none of its other headers (SPEC 5.6)',
    async (_, headers, version) => {
      const pair = await startPair({ SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '700' });
      const messages = [
        ...Array.from({ length: 10 }, (_turn, index) => [
          { role: 'user', content: padding(`turn ${index}`, 250) },
          { role: 'assistant', content: `That was turn ${index}.` },
        ]).flat(),
        { role: 'user', content: padding('more', 900) },
      ];
      const answer = await sendRaw(pair.spillway.url, '/v1/messages', {
        headers: {
          'x-api-key': 'sk-ant-of-the-client',
          'content-type': 'application/json',
          'anthropic-beta': 'context-1m-2026-01-01',
          'x-claude-code-session-id': 's1',
          ...headers,
        },
        body: JSON.stringify({ model: 'm', max_tokens: 1_500, messages }),
      }).answer;
      expect(answer.headers['x-spillway-action']).toBe('auto');
      const [summary] = pair.simulator.summaryRequests();
      expect(summary?.headers).toMatchObject({
        'anthropic-version': version,
        'x-api-key': expect.stringMatching(/ient$/),
      });
      expect(Object.keys(summary?.headers ?? {})).not.toContain('anthropic-beta');
      expect(Object.keys(summary?.headers ?? {})).not.toContain('x-claude-code-session-id');
    },
  );
});
