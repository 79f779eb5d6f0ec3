import { describe, expect, it } from 'vitest';
import { TEXT_FAMILIES } from '../../../src/core/overflow/families.js';
import { errorBody, overflow, recognise, wrote } from './evidence.js';

/** One sentence of every family, as a provider says it. */
const SENTENCES: Readonly<Record<string, string>> = {
  'room-after-output': "This model's maximum context length is 3 tokens. However, your request has 8 input tokens.",
  'vendor-code': 'invalid params, context window exceeds limit (2013)',
  'maximum-context':
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
  'maximum-context-alone': "This model's maximum context length is 8192 tokens.",
  'input-and-output': 'input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648',
  'total-tokens': 'max_total_tokens (33802) must be less than or equal to max_seq_len (32768)',
  'too-long': 'prompt is too long: 213462 tokens > 200000 maximum',
  'exceeds-context': 'Your input exceeds the context window of this model.',
  'context-exceeded': 'Context size has been exceeded.',
  'input-tokens': 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).',
  'input-limit': 'The input exceeds the max input token limit',
  'too-many-input-tokens': 'Too many input tokens. Max input tokens: 128000, request input token count: 140000',
  'too-large-for-model': 'Request body too large for gpt-4o model. Max size: 8000 tokens.',
  'size-limit': 'too many tokens: size limit exceeded by 11326 tokens.',
  'reduce-length': 'Please reduce the length of the messages or completion.',
  'inputs-bound':
    '`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8204 `inputs` tokens and 2047 `max_new_tokens`',
  'text-too-long': 'Your message is too long. Maximum allowed is 32000 tokens, you sent 40000.',
  'token-limit': 'Your request exceeded model token limit: 262144 (requested: 269030)',
  'max-length-exceeded': 'model max length exceeded, max length:8192',
  'length-exceeds': 'Prompt exceeds max length',
  'input-range': 'Range of input length should be [1, 6000]',
  'count-above-limit': 'Messages have 140000 tokens, which exceeds the max limit of 128000 tokens.',
  'count-beside-limit': 'The request needs 33000 tokens and the model allows 32000.',
  'tokens-to-keep': 'Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)',
  'context-is-only': 'the model is loaded with context length of only 32768 tokens',
  'no-room-for-output': 'max_tokens must be at least 1, got -186.',
  'cache-pages': 'context/cache: Job requires 1027 pages (only 1024 available) and cannot be enqueued.',
  'code-in-text': 'ContextWindowExceededError',
  chinese: '输入内容过长',
  japanese: 'コンテキスト長を超えています',
  korean: '입력이 너무 길',
  european: 'Die Eingabe überschreitet das Kontextfenster des Modells',
  'body-size': 'Request Entity Too Large',
  'string-size': "Invalid 'messages[1].content': string too long.",
};

/** Errors about something else that play back what the client wrote. */
const ECHOES: Readonly<Record<string, (text: string) => string>> = {
  'a value in single quotes': (text) => errorBody(`Invalid value: '${text}'. Supported values are: 'auto' and 'none'.`),
  'a name in double quotes': (text) => errorBody(`Unknown tool "${text}"`),
  'the first word in quotes': (text) => errorBody(`"${text}" is not a valid tool name`),
  'a value in back quotes': (text) => errorBody(`Failed to parse arguments \`${text}\` of the call`),
  'a value without quotes': (text) => errorBody(`Invalid type for field content (value ${text} is a string)`),
  'a file name': (text) => errorBody(`Could not open file ${text}.txt: no such file`),
  'text after a colon': (text) => errorBody(`Unknown function: ${text}`),
  'JSON escaped': (text) => errorBody(`Unexpected token in JSON: ${JSON.stringify(text)} at position 4`),
  'a parameter of its own': (text) => errorBody('Unsupported value.', { param: text }),
  'a validation detail': (text) =>
    JSON.stringify({
      detail: [
        {
          type: 'string_type',
          loc: ['body', 'messages', 0],
          msg: 'Input should be a valid list',
          input: text,
          ctx: { given: text },
        },
      ],
    }),
  'a key nobody heard of': (text) => JSON.stringify({ error: { message: 'Bad tool' }, rejected_name: text }),
  'the middle of a longer value, shortened': (text) =>
    errorBody(`Invalid value: '...look at this: ${text} And then...'. Try another.`),
  'inside an event stream': (text) => `data: ${errorBody(`No such file: '${text}'`)}\n\n`,
};

const sentences = Object.entries(SENTENCES).map(([family, sentence]) => ({ family, sentence }));

describe('the sentence of every family is recognised as the provider says it', () => {
  it('every family has a sentence here', () => {
    expect(Object.keys(SENTENCES).toSorted()).toEqual(TEXT_FAMILIES.map(({ name }) => name).toSorted());
  });

  it.each(sentences)('$family', ({ family, sentence }) => {
    const verdict = overflow(errorBody(sentence));
    expect(verdict.reason).toBe(family);
    expect(verdict.kind).toBe(TEXT_FAMILIES.find(({ name }) => name === family)?.kind);
  });
});

describe('what the client wrote is never evidence (SPEC 6.1)', () => {
  it.each(sentences)('$family, played back by an unrelated error', ({ sentence }) => {
    const clientWrote = wrote(`Please look at this: ${sentence} And then go on.`);
    for (const [how, echo] of Object.entries(ECHOES)) {
      expect(recognise(echo(sentence), { clientWrote }).kind, how).toBe('none');
    }
  });

  it('a code in JSON that the client wrote is none either', () => {
    const pasted = '{"error":{"code":"context_length_exceeded","message":"prompt is too long"}}';
    const clientWrote = wrote(`I got ${pasted} yesterday`);
    expect(recognise(errorBody(`Invalid content: ${pasted}`), { clientWrote }).kind).toBe('none');
    expect(recognise(errorBody(`Invalid content: ${pasted}`)).kind).toBe('context');
  });

  it('what the model wrote in a reply is none', () => {
    const content = 'prompt is too long: 213462 tokens > 200000 maximum';
    for (const reply of [
      { object: 'chat.completion', choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'text', text: content }] },
      {
        object: 'response',
        status: 'completed',
        instructions: content,
        metadata: { note: content },
        output: [{ type: 'message', content: [{ text: content }] }],
      },
    ]) {
      expect(recognise(reply, { status: 200 }).kind).toBe('none');
      expect(recognise(`data: ${JSON.stringify(reply)}\n\n`, { status: 200 }).kind).toBe('none');
    }
  });
});

describe('a client that talks of overflows still has its own recognised', () => {
  it.each(sentences)('$family, pasted by the client before', ({ sentence }) => {
    const clientWrote = wrote(`Yesterday it said: ${sentence} What is that?`);
    expect(recognise(errorBody(sentence), { clientWrote }).kind).not.toBe('none');
    expect(recognise({ message: sentence }, { clientWrote }).kind).not.toBe('none');
  });

  it.each([
    [
      'prompt is too long',
      'litellm.BadRequestError: AnthropicException - prompt is too long: 220001 tokens > 200000 maximum',
    ],
    [
      'Input is too long for requested model.',
      'The model returned the following errors: Input is too long for requested model.',
    ],
    [
      'exceeds the context window',
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
    ],
    ['exceeds model context window', 'Estimated total tokens (270000) exceeds model context window (256000)'],
    [
      'maximum context length is 8192 tokens',
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    ],
    ['the context window is full', 'start-slot: unable to process request: the context window is full at 16384'],
  ])('%s', (mention, message) => {
    expect(recognise(errorBody(message), { clientWrote: wrote(`What does "${mention}" mean?`) }).kind).toBe('context');
  });

  it('the same limit with another use is the provider’s, after the client pasted the last one', () => {
    const pasted =
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.";
    const message = `Invalid 'messages': ${pasted.replace('9001', '9417')}`;
    expect(recognise(errorBody(message), { clientWrote: wrote(pasted) })).toMatchObject({
      kind: 'context',
      used: 9_417,
    });
  });

  it('an object printed as text keeps its message, though it stands in quotes', () => {
    const sentence = 'Input is too long for requested model.';
    const printed = `Error code: 400 - {'error': {'message': '${sentence}', 'code': None}}`;
    expect(recognise(errorBody(printed), { clientWrote: wrote(sentence) }).kind).toBe('context');
  });
});

describe('an error about a place in the messages', () => {
  it.each(sentences)('$family, played back behind it without quotes, is none', ({ sentence }) => {
    const clientWrote = wrote(`What does "${sentence}" mean?`);
    const message = `Invalid 'messages[0].content': the template does not allow ${sentence} here.`;
    expect(recognise(errorBody(message), { clientWrote }).kind).toBe('none');
  });

  it.each(sentences)('$family, printed as the part of a message, is none', ({ sentence }) => {
    const clientWrote = wrote(sentence);
    const message = `Unsupported content: ${JSON.stringify({ type: 'text', text: sentence })}`;
    expect(recognise(errorBody(message), { clientWrote }).kind).toBe('none');
  });
});
