import { describe, expect, it } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { createSummarizer } from '../../src/proxy/summarizer.js';

/** What the summariser makes of a provider's whole answer. */
function read(status: number, body: unknown) {
  const bytes = new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
  const summarizer = createSummarizer({
    dialect: chatCompletions,
    send: () =>
      Promise.resolve({
        status,
        headers: [],
        body: (async function* () {
          yield await Promise.resolve(bytes);
        })(),
      }),
    url: 'http://provider.invalid/v1/chat/completions',
    headers: {},
    model: 'any',
    upstreamHost: 'provider.invalid',
  });
  return summarizer(
    { instructions: 'Sum up.', input: 'All of it.', maxOutputTokens: 100 },
    new AbortController().signal,
  );
}

function said(content: string | null, more: object = {}) {
  return { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content, ...more } }] };
}

describe('an answer to a summary call, SPEC 5.7', () => {
  it('is the text of its message', async () => {
    expect(await read(200, said('## Intent'))).toMatchObject({ kind: 'text', text: '## Intent', stopped: true });
  });

  it.each([
    ['in a member of its own', said(null, { reasoning_content: 'Let me think.' })],
    ['between tags in its text', said('<think>Let me think.</think>\n')],
    ['between tags that never close', said('<think>Let me think of ## Intent')],
  ])('is reasoning only where all of it is reasoning %s', async (_, body) => {
    expect(await read(200, body)).toMatchObject({ kind: 'text', reasoningOnly: true });
  });

  it('has no part of the reasoning that stands before its text', async () => {
    const answer = await read(200, said('<think>Let me think.</think>\n## Intent'));
    expect(answer).toMatchObject({ kind: 'text', text: '\n## Intent', reasoningOnly: false });
  });

  it.each([
    [500, 'Internal error with the words of the prompt', 'summariser_status_500'],
    [200, 'no JSON', 'summariser_malformed'],
    [401, { error: { message: 'Incorrect API key provided: sk-1234' } }, 'summariser_status_401'],
  ])('that is an error of status %i is told by its kind, never in its words', async (status, body, reason) => {
    expect(await read(status, body)).toEqual({ kind: 'failed', reason });
  });
});
