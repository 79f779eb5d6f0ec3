import { gzipSync } from 'node:zlib';
import type OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { ReplyPlan } from '../../src/simulator/reply-plan.js';
import { DONE, SSE_HEADERS, chunkEvent, completion, startProvider, writeInPieces } from '../support/provider.js';
import type { Respond } from '../support/provider.js';
import { sendChat } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { callOf, nodesOf, onlyConversation } from '../support/stored.js';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const tool = { type: 'function', function: { name: 'read_file', strict: true, parameters: { type: 'object' } } };
const called = (id: string) => ({
  id,
  type: 'function',
  function: { name: 'read_file', arguments: `{ "path":"${id}" }` },
});

/** Requests with what clients send beside plain text; `nodes`: messages of the chain, leading instructions left out. */
const shapes: Readonly<Record<string, { readonly body: Record<string, unknown>; readonly nodes: number }>> = {
  'system and developer messages, leading and in the middle': {
    nodes: 3,
    body: {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'developer', content: [{ type: 'text', text: 'Use metres.' }], name: 'ops' },
        { role: 'user', content: 'Hello' },
        { role: 'developer', content: 'From here on in French.' },
        { role: 'user', content: 'And now?' },
      ],
    },
  },
  'parallel tool calls, their results and a custom tool': {
    nodes: 7,
    body: {
      tools: [tool, { type: 'custom', custom: { name: 'sh', description: 'runs it' } }],
      tool_choice: { type: 'function', function: { name: 'read_file' } },
      parallel_tool_calls: true,
      messages: [
        { role: 'user', content: 'Compare a and b' },
        { role: 'assistant', content: null, tool_calls: [called('a'), called('b')] },
        { role: 'tool', tool_call_id: 'b', content: 'BB' },
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'AA' }] },
        {
          role: 'assistant',
          content: 'One more.',
          tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'sh', input: 'ls' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: '' },
        { role: 'user', content: 'Go on' },
      ],
    },
  },
  'legacy functions': {
    nodes: 3,
    body: {
      functions: [{ name: 'look_up', parameters: { type: 'object' } }],
      function_call: 'auto',
      messages: [
        { role: 'user', content: 'What is a tide?' },
        { role: 'assistant', content: null, function_call: { name: 'look_up', arguments: '{"word":"tide"}' } },
        { role: 'function', name: 'look_up', content: 'the sea rises' },
      ],
    },
  },
  'images, recordings and files as content parts': {
    nodes: 1,
    body: {
      modalities: ['text', 'audio'],
      audio: { voice: 'alloy', format: 'wav' },
      messages: [
        {
          role: 'user',
          name: 'Ada',
          content: [
            { type: 'text', text: 'What is this?', cache_control: { type: 'ephemeral' } },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}`, detail: 'low' } },
            { type: 'image_url', image_url: { url: 'https://pictures.example/cat.png' } },
            { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
            { type: 'file', file: { file_id: 'file-abc' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
          ],
        },
      ],
    },
  },
  'a refusal, echoed reasoning, audio by its id and members nobody knows': {
    nodes: 7,
    body: {
      messages: [
        { role: 'user', content: 'Do it' },
        { role: 'assistant', content: null, refusal: 'I will not.' },
        { role: 'user', content: 'Then this' },
        { role: 'assistant', content: 'Fine.', reasoning_content: 'a thought', reasoning_details: [{ type: 'x' }] },
        { role: 'user', content: [{ type: 'text', text: 'More' }], vendor_extension: { deep: [1, null, { x: true }] } },
        { role: 'assistant', audio: { id: 'audio_1' }, content: null, annotations: [] },
        { role: 'user', content: 'Bye' },
      ],
    },
  },
  'every option there is, and one there is not': {
    nodes: 1,
    body: {
      n: 2,
      logprobs: true,
      top_logprobs: 3,
      logit_bias: { '50256': -100 },
      seed: 7,
      stop: ['\n', 'END'],
      temperature: 0.3,
      top_p: 1,
      presence_penalty: -0.5,
      max_completion_tokens: 300,
      reasoning_effort: 'low',
      verbosity: 'low',
      service_tier: 'flex',
      store: true,
      metadata: { order: '17' },
      prediction: { type: 'content', content: 'x' },
      response_format: { type: 'json_schema', json_schema: { name: 'r', schema: { type: 'object' } } },
      web_search_options: {},
      user: 'someone',
      something_of_next_year: [{ a: null }],
      messages: [{ role: 'user', content: 'Hello' }],
    },
  },
};

/** A pair whose upstream answers as `respond` says. */
async function startBefore(respond: Respond) {
  const provider = await startProvider(respond);
  return { provider, pair: await startPair({ SPILLWAY_UPSTREAM_URL: provider.url }) };
}

const STREAM = Buffer.from(
  [
    '\uFEFF: opened 👋\r\n\r\n',
    'id: 1\r\nretry: 10\r\nevent: chunk\r\n',
    `data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],\r\n`,
    'data: "obfuscation":"äöü"}\r\n\r\n',
    chunkEvent({ content: 'Größe 👩‍👩‍👧, ' }).replaceAll('\n', '\r'),
    'data:{ "choices" : [ {"delta":{"content":"你好"} , "index":0} ], "seed":12345678901234567890 }\n\n',
    ': comment between\n\n',
    chunkEvent({}, { finish_reason: 'stop' }),
    'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}\n\n',
    DONE,
    ': and one more',
  ].join(''),
);

describe('a request in which nothing is substituted', () => {
  it.each(
    Object.entries(shapes).flatMap(([name, shape]) => [false, true].map((stream) => ({ name, stream, ...shape }))),
  )(
    'leaves as the very bytes that came, and its reply comes back so, SPEC 4.3: $name, stream: $stream',
    async ({ body, nodes, stream }) => {
      const reply = stream
        ? `${chunkEvent({ content: 'Aye' })}${chunkEvent({}, { finish_reason: 'stop' })}${DONE}`
        : completion('Aye');
      const { provider, pair } = await startBefore((_, response) => {
        response.writeHead(200, stream ? SSE_HEADERS : { 'content-type': 'application/json' }).end(reply);
      });
      const sent = JSON.stringify({
        model: 'any',
        stream,
        ...(stream && { stream_options: { include_obfuscation: true } }),
        ...body,
      });
      const answer = await sendChat(pair.spillway.url, sent).answer;

      expect((await answer.body()).toString()).toBe(reply);
      expect(provider.received.map((received) => received.body.toString())).toEqual([sent]);
      expect(answer.headers['x-spillway-action']).toBe('none');
      const stored = await nodesOf(pair, String(answer.headers['x-spillway-conversation']));
      expect(stored.length).toBe(nodes + 1);
      const messages = body['messages'] as readonly unknown[];
      expect(stored.slice(0, -1).map((node) => node.content)).toEqual(messages.slice(-nodes));
      expect(stored.at(-1)?.content).toEqual({ role: 'assistant', content: 'Aye' });
    },
  );

  it.each([
    ['odd white space', '\n{ "model" :"any",\r\n\t"messages":[ {"role" : "user","content":"Hello"} ] }\n\n'],
    [
      'numbers that JavaScript cannot hold',
      '{"model":"any","seed":12345678901234567890,"temperature":1.0000000000000000000001,"top_p":1e400,"messages":[{"role":"user","content":"Hello","id":98765432109876543210}]}',
    ],
    [
      'escapes where none are needed',
      '{"model":"\\u0061ny","messages":[{"role":"us\\u0065r","content":"H\\u00e9llo \\ud83d\\ude00 \\/ \\ud800"}]}',
    ],
    [
      'a member that comes twice',
      '{"model":"other","messages":[{"role":"user","content":"Hello","x":1,"x":2}],"model":"any"}',
    ],
    ['a byte order mark', '\uFEFF{"model":"any","messages":[{"role":"user","content":"Hello"}]}'],
    [
      'messages first and a prototype',
      '{"messages":[{"role":"user","content":"Hello","__proto__":{"a":1}}],"__proto__":null,"model":"any"}',
    ],
  ])('keeps every byte of a body with %s (SPEC 4.3)', async (_, text) => {
    const { provider, pair } = await startBefore((_request, response) => void response.end(completion('Aye')));
    const answer = await sendChat(pair.spillway.url, text).answer;
    expect(answer.status).toBe(200);
    expect(provider.received[0]?.body.toString()).toBe(text);
    expect((await onlyConversation(pair)).nodes).toBe(2);
  });

  it('keeps a body that is no valid UTF-8', async () => {
    const { provider, pair } = await startBefore((_, response) => void response.end(completion('Aye')));
    const bytes = Buffer.concat([
      Buffer.from('{"model":"any","messages":[{"role":"user","content":"a'),
      Buffer.from([0xff, 0xc3, 0x28]),
      Buffer.from('b"}]}'),
    ]);
    await (await sendChat(pair.spillway.url, bytes).answer).body();
    expect(provider.received[0]?.body).toEqual(bytes);
  });

  it('is read although it came compressed, and leaves compressed as it came', async () => {
    const { provider, pair } = await startBefore((_, response) => void response.end(completion('Aye')));
    const bytes = gzipSync(JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hello' }] }));
    const answer = await sendChat(pair.spillway.url, bytes, { 'content-encoding': 'gzip' }).answer;
    expect(answer.status).toBe(200);
    expect(provider.received[0]?.body).toEqual(bytes);
    expect(provider.received[0]?.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-length': String(bytes.length),
    });
    expect((await onlyConversation(pair)).nodes).toBe(2);
  });
});

describe('a reply', () => {
  it.each([1, 2, 3, 5, 7, 16, 61, 100_000])(
    'is relayed byte for byte however its stream is cut, and folded on the side: pieces of %i bytes',
    async (size) => {
      const { pair } = await startBefore(async (_, response) => {
        response.writeHead(200, SSE_HEADERS);
        await writeInPieces(response, STREAM, size);
        response.end();
      });
      const body = { model: 'any', stream: true, messages: [{ role: 'user', content: 'Hello' }] };
      const answer = await sendChat(pair.spillway.url, body).answer;
      expect(Buffer.compare(await answer.body(), STREAM)).toBe(0);
      const stored = await nodesOf(pair, String(answer.headers['x-spillway-conversation']));
      expect(stored.at(-1)?.content).toEqual({ role: 'assistant', content: 'Größe 👩‍👩‍👧, 你好' });
      expect(await callOf(pair, answer.headers)).toMatchObject({
        outcome: 'complete',
        usage: { input_tokens: 9, output_tokens: 5 },
      });
    },
  );

  it('is relayed as it arrives: the next piece of a stream leaves only after the last one was seen', async () => {
    const waiting: (() => void)[] = [];
    const seen = () => new Promise<void>((resolve) => waiting.push(resolve));
    const { pair } = await startBefore(async (_, response) => {
      response.writeHead(200, SSE_HEADERS);
      for (const word of ['one', 'two', 'three']) {
        response.write(chunkEvent({ content: word }));
        await seen();
      }
      response.end(`${chunkEvent({}, { finish_reason: 'stop' })}${DONE}`);
    });
    const body = { model: 'any', stream: true, messages: [{ role: 'user', content: 'Hello' }] };
    const answer = await sendChat(pair.spillway.url, body).answer;
    for (const word of ['one', 'two', 'three']) {
      await answer.until(`"${word}"`);
      waiting.shift()?.();
    }
    expect((await answer.body()).toString()).toContain('[DONE]');
  });

  it('keeps its odd formatting, its status and its headers when it is whole', async () => {
    const text =
      '{ "choices":[ {"index":0,"message":{"role":"assistant","content":"Aye"},"finish_reason":"stop"} ],\n "big":12345678901234567890 }\n';
    const { pair } = await startBefore((_, response) => {
      response.writeHead(200, 'Fine', {
        'content-type': 'application/json; charset=UTF-8',
        'openai-processing-ms': '12',
        'x-request-id': 'req_1',
        'x-ratelimit-remaining-tokens': '99',
      });
      response.end(text);
    });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [{ role: 'user', content: 'Hello' }] })
      .answer;
    expect((await answer.body()).toString()).toBe(text);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json; charset=UTF-8',
      'openai-processing-ms': '12',
      'x-request-id': 'req_1',
      'x-ratelimit-remaining-tokens': '99',
    });
  });

  it('that comes encoded although none was asked for is decoded, read and recorded', async () => {
    const bytes = gzipSync(completion('Aye'));
    const { provider, pair } = await startBefore((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bytes);
    });
    const body = { model: 'any', messages: [{ role: 'user', content: 'Hello' }] };
    const answer = await sendChat(pair.spillway.url, body, { 'accept-encoding': 'gzip, br' }).answer;
    expect(provider.received[0]?.headers['accept-encoding']).toBe('identity');
    expect((await answer.body()).toString()).toBe(completion('Aye'));
    expect(answer.headers).not.toHaveProperty('content-encoding');
    expect((await onlyConversation(pair)).nodes).toBe(2);
  });
});

/** What the official client makes of a turn, streamed or not, as the message it would send back. */
async function ask(pair: StartedPair, request: OpenAI.ChatCompletionCreateParamsNonStreaming, stream: boolean) {
  const { completions } = pair.client().chat;
  return stream ? completions.stream({ ...request, stream: true }).finalChatCompletion() : completions.create(request);
}

const replies: Readonly<Record<string, { readonly plan: ReplyPlan; readonly request?: object }>> = {
  'plain text with white space at its end': { plan: say('Good day, 你好. \n') },
  'parallel tool calls': {
    request: { tools: [tool] },
    plan: callTools({ name: 'read_file', arguments: '{"path":"a"}' }, { name: 'read_file', arguments: '{"path":"b"}' }),
  },
  'text and a tool call': {
    request: { tools: [tool] },
    plan: { kind: 'reply', choices: [{ text: 'Let me look.', calls: [{ name: 'read_file', arguments: '{}' }] }] },
  },
  'a legacy function call': {
    request: { functions: [{ name: 'look_up', parameters: {} }] },
    plan: callTools({ name: 'look_up', arguments: '{"word":"tide"}' }),
  },
  'a refusal': { plan: { kind: 'reply', choices: [{ refusal: 'I would rather not.' }] } },
  'reasoning before the text': { plan: { kind: 'reply', choices: [{ reasoning: 'a long thought', text: 'Done.' }] } },
  'log probabilities': { request: { logprobs: true, top_logprobs: 2 }, plan: say('One word more') },
};

describe('the official client', () => {
  it.each(
    Object.entries(replies).flatMap(([name, reply]) => [false, true].map((stream) => ({ name, stream, ...reply }))),
  )(
    'sends back a reply that meets the node of that reply, SPEC 1.3, 1.4: $name, stream: $stream',
    async ({ plan, request, stream }) => {
      const pair = await startPair({}, { script: ({ messages }) => (messages.length === 1 ? plan : say('Well.')) });
      const first = { model: 'any', messages: [{ role: 'user' as const, content: 'Begin' }], ...request };
      const { choices } = await ask(pair, first, stream);
      const message = choices[0]?.message as OpenAI.ChatCompletionMessage;
      const before = await onlyConversation(pair);
      expect(before.nodes).toBe(2);

      const results: OpenAI.ChatCompletionMessageParam[] = (message.tool_calls ?? []).map((call) => ({
        role: 'tool',
        tool_call_id: call.id,
        content: 'seen',
      }));
      if (message.function_call) results.push({ role: 'function', name: 'look_up', content: 'seen' });
      const next: OpenAI.ChatCompletionMessageParam[] =
        results.length > 0 ? results : [{ role: 'user', content: 'Go on' }];
      await ask(pair, { ...first, messages: [...first.messages, message, ...next] }, stream);

      const after = await onlyConversation(pair);
      expect(after.nodes).toBe(before.nodes + next.length + 1);
      const nodes = await nodesOf(pair, after.id);
      expect(nodes[2]?.predecessor).toBe(before.head);
      // A tool result knows the message that called (SPEC 2.2).
      expect(nodes.filter((node) => node.role === 'tool').map((node) => node.caller)).toEqual(
        results.map(() => before.head),
      );
    },
  );

  it.each([false, true])(
    'gets every choice it asked for, each a node of its own; HEAD is on the first: stream %s',
    async (stream) => {
      const pair = await startPair(
        {},
        { script: () => ({ kind: 'reply', choices: [{ text: 'First' }, { text: 'Second' }, { text: 'Third' }] }) },
      );
      const { choices } = await ask(
        pair,
        { model: 'any', n: 3, messages: [{ role: 'user', content: 'Begin' }] },
        stream,
      );
      expect(choices.map((choice) => choice.message.content)).toEqual(['First', 'Second', 'Third']);
      const conversation = await onlyConversation(pair);
      const [user, ...replied] = await nodesOf(pair, conversation.id);
      expect(replied.map((node) => [node.predecessor, (node.content as { content: string }).content])).toEqual(
        ['First', 'Second', 'Third'].map((text) => [user?.id, text]),
      );
      expect(conversation.head).toBe(replied[0]?.id);
    },
  );

  it('gets usage in its stream only if it asked for it, and then as the provider sent it', async () => {
    const pair = await startPair();
    const read = async (options: object) => {
      const stream = await pair.client().chat.completions.create({
        model: 'any',
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
        ...options,
      });
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      return chunks;
    };
    const asked = await read({ stream_options: { include_usage: true } });
    expect(asked.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: pair.simulator.chatRequests()[0]?.promptTokens },
    });
    const unasked = await read({});
    expect(unasked.every((chunk) => !('usage' in chunk))).toBe(true);
    // Nothing was added to a request that was not rewritten.
    expect(pair.simulator.chatRequests()[1]?.body).not.toHaveProperty('stream_options');
  });
});
