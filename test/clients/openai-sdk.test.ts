import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { Response, ResponseInput, ResponseCreateParamsNonStreaming } from 'openai/resources/responses/responses';
import { describeSessions } from './client-sessions.js';
import type { Place, Session } from './client-sessions.js';
import { INSTRUCTIONS, look, QUESTION, TASK, TOOL } from './tool-loop.js';

const clientOf = ({ url }: Place): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-test', maxRetries: 0 });

/** The SDK's own tool runner on chat completions. */
function chatSession(stream: boolean): Session {
  return async (place) => {
    const { completions } = clientOf(place).chat;
    const tool = {
      type: 'function' as const,
      function: { ...TOOL, parse: (json: string) => ({ json }), function: ({ json }: { json: string }) => look(json) },
    };
    const say = async (messages: readonly ChatCompletionMessageParam[]) => {
      const body = { model: place.model, messages: [...messages], tools: [tool] };
      const options = { maxChatCompletions: 100 };
      const runner = stream
        ? completions.runTools({ ...body, stream: true }, options)
        : completions.runTools(body, options);
      return { text: (await runner.finalContent()) ?? '', messages: runner.messages };
    };
    const work = await say([
      { role: 'developer', content: INSTRUCTIONS },
      { role: 'user', content: TASK },
    ]);
    const asked = await say([...work.messages, { role: 'user', content: QUESTION }]);
    return { done: work.text, answer: asked.text };
  };
}

interface ResponsesStyle {
  readonly stream: boolean;
  /** The provider holds the history, and each request carries what is new alone. */
  readonly continues: boolean;
  readonly more?: Partial<ResponseCreateParamsNonStreaming>;
}

function responsesSession({ stream, continues, more = {} }: ResponsesStyle): Session {
  return async (place) => {
    const { responses } = clientOf(place);
    let input: ResponseInput = [];
    let previous: string | null = null;
    const create = (body: ResponseCreateParamsNonStreaming): Promise<Response> =>
      stream ? responses.stream({ ...body, stream: true }).finalResponse() : responses.create(body);
    const say = async (text: string): Promise<string> => {
      input.push({ role: 'user', content: text });
      for (;;) {
        const response = await create({
          model: place.model,
          instructions: INSTRUCTIONS,
          tools: [{ type: 'function', strict: true, ...TOOL }],
          input,
          ...more,
          ...(previous === null ? {} : { previous_response_id: previous }),
        });
        if (continues) previous = response.id;
        const said = response.output.flatMap((item) =>
          item.type === 'reasoning' || item.type === 'message' || item.type === 'function_call' ? [item] : [],
        );
        input = continues ? [] : [...input, ...said];
        const calls = said.filter((item) => item.type === 'function_call');
        if (calls.length === 0) return response.output_text;
        for (const { call_id, arguments: json } of calls) {
          input.push({ type: 'function_call_output', call_id, output: look(json) });
        }
      }
    };
    return { done: await say(TASK), answer: await say(QUESTION) };
  };
}

const encrypted: Partial<ResponseCreateParamsNonStreaming> = {
  store: false,
  include: ['reasoning.encrypted_content'],
};

describeSessions({
  'the OpenAI SDK on chat completions': chatSession(false),
  'the OpenAI SDK on chat completions, streaming': chatSession(true),
  'the OpenAI SDK on responses': responsesSession({ stream: false, continues: false }),
  'the OpenAI SDK on responses, streaming, with encrypted reasoning': responsesSession({
    stream: true,
    continues: false,
    more: encrypted,
  }),
  'the OpenAI SDK on responses by previous_response_id': responsesSession({ stream: false, continues: true }),
  'the OpenAI SDK on responses by previous_response_id, streaming': responsesSession({ stream: true, continues: true }),
});
