import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import type { LanguageModel, ModelMessage } from 'ai';
import { describeSessions } from './client-sessions.js';
import type { Place, Session } from './client-sessions.js';
import { INSTRUCTIONS, look, QUESTION, TASK, TOOL } from './tool-loop.js';

const tools = {
  [TOOL.name]: tool({
    description: TOOL.description,
    inputSchema: jsonSchema<{ part: number }>({ ...TOOL.parameters, properties: { part: { type: 'integer' } } }),
    execute: (input) => look(JSON.stringify(input)),
  }),
};

function session(modelAt: (place: Place) => LanguageModel, stream: boolean): Session {
  return async (place) => {
    const messages: ModelMessage[] = [];
    const say = async (text: string): Promise<string> => {
      messages.push({ role: 'user', content: text });
      const errors: unknown[] = [];
      const call = {
        model: modelAt(place),
        system: INSTRUCTIONS,
        messages,
        tools,
        stopWhen: stepCountIs(100),
        maxRetries: 0,
      };
      const result = stream
        ? streamText({ ...call, onError: ({ error }) => void errors.push(error) })
        : await generateText(call);
      const answer = await Promise.resolve(result.text).catch((error: unknown) => {
        throw errors[0] ?? error;
      });
      if (errors.length > 0) throw errors[0];
      messages.push(...(await result.response).messages);
      return answer;
    };
    return { done: await say(TASK), answer: await say(QUESTION) };
  };
}

const settings = ({ url }: Place) => ({ baseURL: `${url}/v1`, apiKey: 'sk-test' });
const responses = (place: Place): LanguageModel => createOpenAI(settings(place))(place.model);
const compatible = (place: Place): LanguageModel =>
  createOpenAICompatible({ ...settings(place), name: 'spillway', includeUsage: true })(place.model);

describeSessions({
  'the AI SDK with its default model, which refers to earlier items': session(responses, false),
  'the AI SDK with its default model, streaming': session(responses, true),
  'the AI SDK with an OpenAI-compatible model': session(compatible, false),
  'the AI SDK with an OpenAI-compatible model, streaming': session(compatible, true),
});
