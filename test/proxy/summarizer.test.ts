import { describe, expect, it } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { responses } from '../../src/dialects/responses.js';
import { createSummarizer } from '../../src/proxy/summarizer.js';

/** What the summariser makes of a provider's whole answer. */
function read(status: number, body: unknown, dialect = chatCompletions) {
  const bytes = new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
  const summarizer = createSummarizer({
    dialect,
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

describe('an answer to a summary call that is several messages, SPEC 5.7', () => {
  const message = (text: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] });
  const thought = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me think.' }] };
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  const answer = (...output: readonly object[]) => ({ id: 'resp_1', object: 'response', status: 'completed', output });

  it('is the text of them all', async () => {
    const body = answer(thought, message('## Intent'), message(''), message('## Facts'));
    expect(await read(200, body, responses)).toMatchObject({
      kind: 'text',
      text: '## Intent\n\n## Facts',
      stopped: true,
      calledTool: false,
      reasoningOnly: false,
    });
  });

  it('is reasoning only where nothing else was said, and a call wherever one was made', async () => {
    expect(await read(200, answer(thought), responses)).toMatchObject({ reasoningOnly: true, calledTool: false });
    expect(await read(200, answer(message('## Intent'), call), responses)).toMatchObject({ calledTool: true });
  });

  it('of nothing is malformed', async () => {
    expect(await read(200, answer(), responses)).toEqual({ kind: 'failed', reason: 'summariser_malformed' });
  });
});
