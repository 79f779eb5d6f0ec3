import Anthropic from '@anthropic-ai/sdk';
import type { ContentBlock, MessageCreateParamsNonStreaming, MessageParam } from '@anthropic-ai/sdk/resources/messages';
import { describeSessions } from './client-sessions.js';
import type { Place, Session } from './client-sessions.js';
import { INSTRUCTIONS, look, QUESTION, TASK, TOOL } from './tool-loop.js';

const clientOf = ({ url }: Place): Anthropic => new Anthropic({ baseURL: url, apiKey: 'sk-ant-test', maxRetries: 0 });
const definition = { name: TOOL.name, description: TOOL.description, input_schema: TOOL.parameters };

function textOf(content: readonly { readonly type: string; readonly text?: unknown }[]): string {
  return content.map((block) => (block.type === 'text' && typeof block.text === 'string' ? block.text : '')).join('');
}

function messagesSession(stream: boolean, more: Partial<MessageCreateParamsNonStreaming> = {}): Session {
  return async (place) => {
    const { messages: api } = clientOf(place);
    const messages: MessageParam[] = [];
    const create = async (body: MessageCreateParamsNonStreaming): Promise<readonly ContentBlock[]> =>
      (stream ? await api.stream(body).finalMessage() : await api.create(body)).content;
    const say = async (text: string): Promise<string> => {
      messages.push({ role: 'user', content: text });
      for (;;) {
        const content = await create({
          model: place.model,
          max_tokens: 1_500,
          system: INSTRUCTIONS,
          tools: [definition],
          messages,
          ...more,
        });
        messages.push({ role: 'assistant', content: [...content] });
        const calls = content.filter((block) => block.type === 'tool_use');
        if (calls.length === 0) return textOf(content);
        messages.push({
          role: 'user',
          content: calls.map(({ id, input }) => ({
            type: 'tool_result',
            tool_use_id: id,
            content: look(JSON.stringify(input)),
          })),
        });
      }
    };
    return { done: await say(TASK), answer: await say(QUESTION) };
  };
}

/** The SDK's own tool runner. */
const runnerSession: Session = async (place) => {
  const { messages: api } = clientOf(place).beta;
  const tool = {
    ...definition,
    run: (input: unknown) => look(JSON.stringify(input)),
    parse: (input: unknown) => input,
  };
  const say = async (messages: Anthropic.Beta.BetaMessageParam[]) => {
    const runner = api.toolRunner({
      model: place.model,
      max_tokens: 1_500,
      system: INSTRUCTIONS,
      messages,
      tools: [tool],
    });
    const last = await runner.runUntilDone();
    return { text: textOf(last.content), messages: [...runner.params.messages] };
  };
  const work = await say([{ role: 'user', content: TASK }]);
  const asked = await say([...work.messages, { role: 'user', content: QUESTION }]);
  return { done: work.text, answer: asked.text };
};

describeSessions({
  'the Anthropic SDK': messagesSession(false),
  'the Anthropic SDK, streaming, with signed thinking': messagesSession(true, {
    thinking: { type: 'enabled', budget_tokens: 1_024 },
  }),
});

// It keeps its history at the provider until it is told to send it all (SPEC 1.7).
describeSessions({ 'the tool runner of the Anthropic SDK': runnerSession }, [200, 404]);
