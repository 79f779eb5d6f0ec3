import { expect, test } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { foldsStreams } from './conformance.js';

/** Streams in the shapes real vendors send: the data of their events, and the reply that each folds to. */
const streams = {
  OpenAI: {
    events: [
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"a"}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"Let me "},"logprobs":{"content":[{"token":"Let","logprob":-0.1,"bytes":[76],"top_logprobs":[]}],"refusal":null},"finish_reason":null}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"look."},"logprobs":null,"finish_reason":null}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":"}}]},"logprobs":null,"finish_reason":null}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"a\\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"read","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}',
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":82,"completion_tokens":17,"total_tokens":99,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}',
      '[DONE]',
    ],
    firstContent: 1,
    finishedAt: 8,
    endsAt: 10,
    usageOnly: [9],
    source: {
      role: 'assistant',
      content: 'Let me look.',
      tool_calls: [
        { id: 'call_a', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
        { id: 'call_b', type: 'function', function: { name: 'read', arguments: '{}' } },
      ],
    },
    stopReason: 'tool_calls',
    usage: { inputTokens: 82, outputTokens: 17, cachedTokens: 0, reasoningTokens: 0 },
  },
  vLLM: {
    events: [
      '{"id":"cmpl-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}',
      '{"id":"cmpl-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"reasoning_content":"Hm"},"logprobs":null,"finish_reason":null}]}',
      '{"id":"cmpl-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"reasoning_content":"."},"logprobs":null,"finish_reason":null}]}',
      '{"id":"cmpl-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-1","type":"function","index":0,"function":{"name":"f"}}]},"logprobs":null,"finish_reason":null}]}',
      '{"id":"cmpl-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-2","type":"function","index":0,"function":{"arguments":"{\\"a\\": 1}"}}]},"logprobs":null,"finish_reason":null}]}',
      '{"id":"cmpl-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null}]}',
      '{"id":"cmpl-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-8B","choices":[],"usage":{"prompt_tokens":30,"total_tokens":42,"completion_tokens":12}}',
      '[DONE]',
    ],
    firstContent: 1,
    finishedAt: 5,
    endsAt: 7,
    usageOnly: [6],
    source: {
      role: 'assistant',
      content: null,
      reasoning_content: 'Hm.',
      tool_calls: [{ id: 'chatcmpl-tool-1', type: 'function', function: { name: 'f', arguments: '{"a": 1}' } }],
    },
    stopReason: 'tool_calls',
    usage: { inputTokens: 30, outputTokens: 12, cachedTokens: null, reasoningTokens: null },
  },
  DeepSeek: {
    events: [
      '{"id":"1","object":"chat.completion.chunk","created":1,"model":"deepseek-reasoner","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"logprobs":null,"finish_reason":null}]}',
      '{"id":"1","object":"chat.completion.chunk","created":1,"model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"First,"},"logprobs":null,"finish_reason":null}]}',
      '{"id":"1","object":"chat.completion.chunk","created":1,"model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":"Yes","reasoning_content":null},"logprobs":null,"finish_reason":null}]}',
      '{"id":"1","object":"chat.completion.chunk","created":1,"model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":".","reasoning_content":null},"logprobs":null,"finish_reason":null}]}',
      '{"id":"1","object":"chat.completion.chunk","created":1,"model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":6},"prompt_cache_hit_tokens":16,"prompt_cache_miss_tokens":4}}',
      '[DONE]',
    ],
    firstContent: 1,
    finishedAt: 4,
    endsAt: 5,
    usageOnly: [],
    source: { role: 'assistant', content: 'Yes.', reasoning_content: 'First,' },
    stopReason: 'stop',
    usage: { inputTokens: 20, outputTokens: 9, cachedTokens: 16, reasoningTokens: 6 },
  },
  Azure: {
    events: [
      '{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}',
      '{"choices":[{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"chatcmpl-1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk"}',
      '{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"delta":{"content":"Hello"},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"chatcmpl-1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk"}',
      '{"choices":[{"content_filter_results":{},"delta":{},"finish_reason":"stop","index":0,"logprobs":null}],"created":1,"id":"chatcmpl-1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk"}',
      '[DONE]',
    ],
    firstContent: 2,
    finishedAt: 3,
    endsAt: 4,
    usageOnly: [],
    source: { role: 'assistant', content: 'Hello' },
    stopReason: 'stop',
    usage: null,
  },
  'Groq, whose usage has a place of its own': {
    events: [
      '{"id":"c","object":"chat.completion.chunk","created":1,"model":"llama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}],"x_groq":{"id":"req_1"}}',
      '{"id":"c","object":"chat.completion.chunk","created":1,"model":"llama","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"queue_time":0.01,"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}}',
      '[DONE]',
    ],
    firstContent: 0,
    finishedAt: 1,
    endsAt: 2,
    usageOnly: [],
    source: { role: 'assistant', content: 'Hi' },
    stopReason: 'stop',
    usage: { inputTokens: 9, outputTokens: 2, cachedTokens: null, reasoningTokens: null },
  },
};

foldsStreams(chatCompletions, streams);

test('a stream of OpenRouter that breaks keeps what was said and the error, and never finishes', () => {
  const events = [
    '{"id":"gen-1","provider":"Anthropic","model":"anthropic/x","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}',
    '{"id":"gen-1","provider":"Anthropic","model":"anthropic/x","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","format":"anthropic-claude-v1","index":0}]},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}',
    '{"id":"gen-1","provider":"Anthropic","model":"anthropic/x","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Well"},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}',
    '{"id":"gen-1","provider":"Anthropic","model":"anthropic/x","object":"chat.completion.chunk","created":1,"error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","native_finish_reason":null}]}',
    '[DONE]',
  ];
  const folder = chatCompletions.folder();
  const meanings = events.map((event) => {
    const meaning = folder.push(event, null);
    expect(folder.reply().finished).toBe(false);
    return meaning;
  });
  expect(meanings.map((meaning) => meaning.hasError)).toEqual([false, false, false, true, false]);
  expect(folder.reply()).toMatchObject({
    messages: [{ text: 'Well', reasoning: 'Hm' }],
    stopReason: 'error',
    error: '{"error":{"code":502,"message":"Provider disconnected"}}',
  });
});
