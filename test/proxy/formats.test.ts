import { describe, expect, it } from 'vitest';
import { startPair } from '../support/start.js';

const thin = (conversation: string) => ({ 'x-spillway-conversation': conversation, 'x-spillway-append': 'true' });

describe('a conversation is of one format (SPEC 1.4)', () => {
  it('under one name each format has its own, and neither meets the other', async () => {
    const pair = await startPair();
    const send = (path: string, body: object, conversation: string): Promise<Response> =>
      fetch(`${pair.spillway.url}/v1${path}`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json', ...thin(conversation) },
        body: JSON.stringify({ model: 'any', ...body }),
      });
    const say = { messages: [{ role: 'user', content: 'Hello' }] };
    const chat = await send('/chat/completions', say, 'project');
    const responses = await send('/responses', { input: 'Hello' }, 'project');
    expect([chat.status, responses.status]).toEqual([200, 200]);
    const id = (response: Response): string => response.headers.get('x-spillway-conversation') ?? '';
    expect(id(chat)).not.toBe(id(responses));
    expect((await send('/chat/completions', say, 'project')).status).toBe(200);

    const wrong = await send('/responses', { input: 'Hello' }, id(chat));
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({ error: { param: 'x-spillway-conversation' } });
  });
});

describe('media whose price only the provider knows', () => {
  it('is no reason to refuse: the provider is asked (SPEC 7.7, 7.9)', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=8000' });
    const content = [
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'text', text: 'Read it.' },
    ];
    const response = await pair.post({ model: 'any', messages: [{ role: 'user', content }] });
    expect(response.status).toBe(200);
    expect(pair.simulator.chatRequests()).toHaveLength(1);
  });

  it('does not help a request whose text alone is too long: that is refused before it leaves (SPEC 7.7)', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=8000' });
    const long = Array.from({ length: 9_000 }, (_, index) => `word${index}`).join(' ');
    const content = [
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'text', text: long },
    ];
    const response = await pair.post({ model: 'any', messages: [{ role: 'user', content }] });
    expect(response.status).toBe(400);
    expect(pair.simulator.chatRequests()).toHaveLength(0);
  });
});
