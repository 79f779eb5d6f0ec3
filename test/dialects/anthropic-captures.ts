/**
 * What Claude Code and the SDK sent in consecutive requests of one tool loop, texts cut: what they change in an unchanged history.
 */
const reminder = { type: 'text', text: '<system-reminder>\nAttribution for git commits' };
const call = (id: string, command: string) => ({ type: 'tool_use', id, name: 'Bash', input: { command } });
const result = (tool_use_id: string, content: string) => ({
  tool_use_id,
  type: 'tool_result',
  content,
  is_error: false,
});
const thinking = (signature: string) => ({ type: 'thinking', thinking: 'Thinking about echo.', signature });
const marked = { cache_control: { type: 'ephemeral' } };

const system = [
  { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.332.ea0;' },
  { type: 'text', text: "You are a Claude agent, built on Anthropic's Claude Agent", ...marked },
];
const opening = [
  { role: 'user', content: [reminder, { type: 'text', text: 'PROMPT one: run echo twice with the shell' }] },
  { role: 'system', content: '# Environment\nYou have been invoked', output_config: { effort: 'medium' } },
  {
    role: 'assistant',
    content: [thinking('sig6b2a'), { type: 'text', text: 'Let me run that.' }, call('toolu_1', 'echo mock-1')],
  },
];
const rest = {
  model: 'claude-opus-5-5',
  system,
  tools: [{ name: 'Bash', description: 'Executes a bash command', input_schema: { type: 'object' } }],
  metadata: {
    user_id: '{"device_id":"2323","account_uuid":"","session_id":"a5fc76f8-a553-4567-8584-5f67f2632d49"}',
  },
  max_tokens: 128_000,
  thinking: { type: 'adaptive', display: 'omitted' },
  stream: true,
};

/** The cache mark stands on the last block, and moves on with each request. */
export const claudeCode = {
  first: {
    ...rest,
    messages: [...opening, { role: 'user', content: [{ ...result('toolu_1', 'mock-1'), ...marked }] }],
  },
  second: {
    ...rest,
    messages: [
      ...opening,
      { role: 'user', content: [result('toolu_1', 'mock-1')] },
      { role: 'assistant', content: [thinking('sige967'), { type: 'text', text: 'FINAL-1' }] },
      { role: 'user', content: [{ type: 'text', text: 'PROMPT two: run echo again', ...marked }] },
    ],
  },
  /** A marked text becomes a plain string when the mark leaves it. */
  third: {
    ...rest,
    messages: [
      ...opening,
      { role: 'user', content: [result('toolu_1', 'mock-1')] },
      { role: 'assistant', content: [thinking('sige967'), { type: 'text', text: 'FINAL-1' }] },
      { role: 'user', content: 'PROMPT two: run echo again' },
      { role: 'assistant', content: [thinking('sigc174'), call('toolu_2', 'echo mock-4')] },
      { role: 'user', content: [{ ...result('toolu_2', 'mock-4'), ...marked }] },
    ],
  },
  /** On the next day a reminder of the date follows the newest user message. */
  nextDay: {
    ...rest,
    messages: [
      ...opening,
      { role: 'user', content: [result('toolu_1', 'mock-1')] },
      { role: 'assistant', content: [thinking('sige967'), { type: 'text', text: 'FINAL-1' }] },
      { role: 'user', content: 'PROMPT two: run echo again' },
      { role: 'system', content: [{ type: 'text', text: 'The date has changed.', ...marked }] },
    ],
  },
  /** Its own compaction asks in the message of the tool results. */
  compaction: {
    ...rest,
    messages: [
      { role: 'user', content: '[earlier conversation truncated for compaction retry]' },
      opening[1],
      opening[2],
      {
        role: 'user',
        content: [
          result('toolu_1', 'mock-1'),
          { type: 'text', text: 'CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.' },
        ],
      },
    ],
  },
};

/** The SDK's tool runner keeps its history at the provider and sends what is new. */
export const sdkThread = {
  create: {
    model: 'claude-sonnet-4-5',
    max_tokens: 500,
    messages: [{ role: 'user', content: 'PROMPT one: run echo twice' }],
    thread: { type: 'create' },
    stream: true,
  },
  continued: {
    model: 'claude-sonnet-4-5',
    max_tokens: 500,
    messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_f290', content: 'ok' }] }],
    thread: { type: 'continue', previous_message_id: 'msg_37d3' },
    stream: true,
  },
};
