/**
 * What real clients sent in requests of one tool loop, texts cut, and what the provider had sent them: how they give its items back.
 */
const question = 'PROMPT one: run echo twice with the shell';
const ciphertext = 'gAAAA08be4cb8c9675eda22948126970183f5523386db3a2a529b25440cd8a46d';
const calls = [
  { id: 'fc_d354', call_id: 'call_b2ba', arguments: '{"cmd":"echo mock-1"}' },
  { id: 'fc_0e92', call_id: 'call_2cdb', arguments: '{"cmd":"echo mock-2"}' },
] as const;

/** The output of the first response, as the provider sent it. */
export const firstOutput = [
  {
    id: 'rs_db52',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Thinking about echo.' }],
    encrypted_content: ciphertext,
  },
  {
    id: 'msg_70f4',
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', annotations: [], logprobs: [], text: 'Let me run that.' }],
  },
  ...calls.map((call) => ({ ...call, type: 'function_call', status: 'completed', name: 'exec_command' })),
];
const [reasoning, said, ...called] = firstOutput;
const results = calls.map(({ call_id }, index) => ({
  type: 'function_call_output',
  call_id,
  output: `mock-${index + 1}\n`,
}));

/** The plainest form of the same history: what every other stands for. */
export const plain = [{ role: 'user', content: question }, ...firstOutput, ...results];

const metadata = (turn_id: string) => ({ internal_chat_message_metadata_passthrough: { turn_id } });

/** The input of the second request, by client. */
export const secondInputs: Readonly<Record<string, readonly object[]>> = {
  'codex names its own items and adds a null to reasoning': [
    { type: 'message', id: 'msg_01a2', role: 'user', content: [{ type: 'input_text', text: question }] },
    { ...reasoning, content: null },
    ...firstOutput.slice(1),
    ...results.map((result, index) => ({ ...result, id: `fco_${index}` })),
  ],
  'codex with its built-in provider adds metadata to each': [
    {
      type: 'message',
      id: 'msg_01a2',
      role: 'user',
      content: [{ type: 'input_text', text: question }],
      internal_chat_message_metadata_passthrough: { turn_id: '1', create_time: 1.5, content_item_kinds: ['user.text'] },
    },
    ...firstOutput.map((item) => ({ ...item, ...metadata('1') })),
    ...results.map((result, index) => ({ ...result, id: `fco_${index}`, ...metadata('1') })),
  ],
  'pi leaves out ciphertext, status and logprobs': [
    { role: 'user', content: [{ type: 'input_text', text: question }] },
    { id: 'rs_db52', type: 'reasoning', summary: [{ type: 'summary_text', text: 'Thinking about echo.' }] },
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Let me run that.', annotations: [] }],
      status: 'completed',
      id: 'msg_70f4',
    },
    ...calls.map((call) => ({ type: 'function_call', ...call, name: 'exec_command' })),
    ...results,
  ],
  'opencode leaves out reasoning, types and ids': [
    { role: 'user', content: [{ type: 'input_text', text: question }] },
    { role: 'assistant', content: [{ type: 'output_text', text: 'Let me run that.' }] },
    ...calls.map(({ id: _id, ...call }) => ({ type: 'function_call', ...call, name: 'exec_command' })),
    ...results,
  ],
  'the agents SDK adds a status to results, and its memory drops the ids of calls': [
    { role: 'user', content: question },
    { id: 'rs_db52', type: 'reasoning', summary: [{ type: 'summary_text', text: 'Thinking about echo.' }] },
    { ...said },
    ...called.map(({ id: _id, ...call }) => call),
    ...results.map((result) => ({ ...result, status: 'completed' })),
  ],
  'the SDK’s stream helper adds what it parsed': [
    { role: 'user', content: question },
    { ...reasoning },
    {
      ...said,
      content: [{ type: 'output_text', annotations: [], logprobs: [], text: 'Let me run that.', parsed: null }],
    },
    ...called.map((call) => ({ ...call, parsed_arguments: { cmd: 'echo mock-1' } })),
    ...results,
  ],
  'langchain writes a plain string': [{ type: 'message', role: 'user', content: question }, ...firstOutput, ...results],
};

/** The AI SDK refers to reasoning and messages, and repeats calls. */
export const references = [
  { role: 'system', content: 'You are a coding agent.' },
  { role: 'user', content: [{ type: 'input_text', text: question }] },
  { type: 'item_reference', id: 'rs_db52' },
  { type: 'item_reference', id: 'msg_70f4' },
  ...calls.map(({ id: _id, ...call }) => ({ type: 'function_call', ...call, name: 'exec_command' })),
  ...results,
];

/** The rest of a request of Codex: its instructions are developer items, and its input can ask for a compaction. */
export const codex = {
  model: 'gpt-5.1',
  stream: true,
  input: [
    {
      type: 'message',
      id: 'msg_25a3',
      role: 'developer',
      content: [{ type: 'input_text', text: 'You are a coding agent.' }],
    },
    { type: 'message', id: 'msg_01a0', role: 'developer', content: [{ type: 'input_text', text: '## Skills' }] },
    ...(secondInputs['codex names its own items and adds a null to reasoning'] ?? []),
  ],
  tools: [
    { type: 'function', name: 'exec_command', parameters: {} },
    { type: 'namespace', name: 'collaboration', tools: [] },
    { type: 'web_search', external_web_access: false },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { summary: 'auto' },
  store: false,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '01a231ac-22c8-7c60-a632-b612a1c85e8b',
};
