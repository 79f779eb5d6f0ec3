import { describe, expect, it } from 'vitest';
import { serverError } from '../../src/simulator/openai-errors.js';
import { say } from '../../src/simulator/reply-plan.js';
import { chunkEvent, completion, SSE_HEADERS, startProvider } from '../support/provider.js';
import { sendChat } from '../support/raw-client.js';
import { lastMessages, messagesIn } from '../support/sent.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { conversationsOf, nodesOf, onlyConversation } from '../support/stored.js';

type Wire = Readonly<Record<string, unknown>>;

const user = (content: unknown): Wire => ({ role: 'user', content });
const assistant = (content: unknown): Wire => ({ role: 'assistant', content });

/** Sends a list to the end and returns the answer's status, headers and text. */
async function send(
  pair: StartedPair,
  messages: readonly Wire[],
  headers: Record<string, string> = {},
  more: object = {},
) {
  const answer = await sendChat(pair.spillway.url, { model: 'any', messages, ...more }, headers).answer;
  return { status: answer.status, headers: answer.headers, text: (await answer.body()).toString() };
}

/** A pair whose model always says `Aye.`. */
function startAye(settings: Record<string, string> = {}) {
  return startPair(settings, { script: () => say('Aye.') });
}

const call = (id: string, args: unknown) => ({ id, type: 'function', function: { name: 'f', arguments: args } });

describe('a history', () => {
  it('that is sent again creates nothing, SPEC 1.4', async () => {
    const pair = await startAye();
    await send(pair, [user('One')]);
    const before = await onlyConversation(pair);
    const again = await send(pair, [user('One')]);
    const after = await onlyConversation(pair);
    expect(after).toMatchObject({ nodes: before.nodes, calls: 2 });
    expect(again.headers['x-spillway-head']).toBe((await nodesOf(pair, after.id))[1]?.id);
  });

  it('is kept for a request without a model too: some servers have only one', async () => {
    const provider = await startProvider((_, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(completion('Aye.'));
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: `${provider.url}/v1` });
    const answer = await pair.post({ messages: [user('One')] });
    expect(answer.status).toBe(200);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 2, calls: 1 });
  });

  it('that was edited forks where it differs; HEAD goes with the client, SPEC 1.4, 8.1', async () => {
    const pair = await startAye();
    await send(pair, [user('One')]);
    await send(pair, [user('One'), assistant('Aye.'), user('Two')]);
    const trunk = await onlyConversation(pair);
    await send(pair, [user('One'), assistant('Aye.'), user('Zwei')]);
    const forked = await onlyConversation(pair);
    expect(forked.nodes).toBe(trunk.nodes + 2);
    expect(forked.head).not.toBe(trunk.head);
    const nodes = await nodesOf(pair, forked.id);
    const children = nodes.filter((node) => node.predecessor === nodes[1]?.id);
    expect(children.map((node) => (node.content as Wire)['content'])).toEqual(['Two', 'Zwei']);
    // Back on the trunk, nothing is written twice.
    await send(pair, [user('One'), assistant('Aye.'), user('Two')]);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: forked.nodes, head: trunk.head });
  });

  const base: readonly Wire[] = [
    user('One'),
    { role: 'assistant', content: 'Aye.', tool_calls: [call('c', '{"a": 1}')] },
    { role: 'tool', tool_call_id: 'c', content: 'seen' },
  ];
  const same: readonly [string, number, Wire][] = [
    [
      'a text as an array of parts',
      0,
      user([
        { type: 'text', text: 'O' },
        { type: 'text', text: 'ne' },
      ]),
    ],
    [
      'cache marks and members nobody knows',
      0,
      { content: [{ type: 'text', text: 'One', cache_control: { type: 'ephemeral' } }], role: 'user', id: 'x' },
    ],
    ['white space at the end of what the assistant said', 1, { ...base[1], content: 'Aye. \n\n' }],
    [
      'echoed reasoning and annotations',
      1,
      { ...base[1], reasoning_content: 'a thought', annotations: [], refusal: null, audio: null },
    ],
    [
      'another order of keys, and an index',
      1,
      {
        tool_calls: [{ function: { arguments: '{"a": 1}', name: 'f' }, index: 0, type: 'function', id: 'c' }],
        content: [{ text: 'Aye.', type: 'text' }],
        role: 'assistant',
      },
    ],
    ['a result in parts', 2, { role: 'tool', content: [{ type: 'text', text: 'seen' }], tool_call_id: 'c', name: 'f' }],
    ['a name that is empty', 0, { ...user('One'), name: '' }],
  ];
  it.each(same)('with %s is the same history, SPEC 1.3', async (_, index, changed) => {
    const pair = await startAye();
    await send(pair, base);
    const { nodes } = await onlyConversation(pair);
    const messages = base.map((message, at) => (at === index ? changed : message));
    await send(pair, messages);
    expect(await onlyConversation(pair)).toMatchObject({ nodes, calls: 2 });
    // What counts for nothing in identity is sent all the same (SPEC 4.3).
    expect(lastMessages(pair)).toEqual(messages);
  });

  it('with empty, null and absent content is the same history, SPEC 1.3', async () => {
    const pair = await startAye();
    const calls = { role: 'assistant', tool_calls: [call('c', '{}')] };
    const contents = [{ content: '' }, { content: null }, {}, { content: [] }];
    for (const content of contents)
      await send(pair, [user('One'), { ...calls, ...content }, { role: 'tool', tool_call_id: 'c', content: 'seen' }]);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 4, calls: contents.length });
  });

  const different: readonly [string, number, ...Wire[]][] = [
    ['white space at the end of what the user said', 0, user('One ')],
    ['the name of a user', 0, { ...user('One'), name: 'Ada' }],
    ['the id of a call', 1, { ...base[1], tool_calls: [call('d', '{"a": 1}')] }, { ...base[2], tool_call_id: 'd' }],
    ['the spelling of arguments', 1, { ...base[1], tool_calls: [call('c', '{"a":1}')] }],
    ['a result', 2, { role: 'tool', tool_call_id: 'c', content: '[cleared]' }],
    [
      'a picture',
      0,
      user([
        { type: 'text', text: 'One' },
        { type: 'image_url', image_url: { url: 'https://pictures.example/a.png' } },
      ]),
    ],
  ];
  it.each(different)('that differs in %s is a different one, SPEC 1.3', async (_, index, ...changed) => {
    const pair = await startAye();
    const messages = [...base.slice(0, index), ...changed, ...base.slice(index + changed.length)];
    await send(pair, base, { 'x-spillway-conversation': 'it' });
    await send(pair, messages, { 'x-spillway-conversation': 'it' });
    // Three messages and a reply; what follows a difference follows it anew.
    expect((await onlyConversation(pair)).nodes).toBe(4 + 4 - index);
  });

  it('belongs to its conversation whatever the leading instructions say, SPEC 1.5', async () => {
    const pair = await startAye();
    for (const time of ['12:00', '12:01'])
      await send(pair, [{ role: 'system', content: `It is ${time}.` }, user('One')]);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 2, calls: 2 });
  });
});

describe('a conversation', () => {
  it('is one for each first message where the client names none, SPEC 1.2', async () => {
    const pair = await startAye();
    const first = await send(pair, [user('One')]);
    const second = await send(pair, [user('Other')]);
    const third = await send(pair, [user('One'), assistant('Aye.'), user('Two')]);
    expect(first.headers['x-spillway-conversation']).toBe(third.headers['x-spillway-conversation']);
    expect(first.headers['x-spillway-conversation']).not.toBe(second.headers['x-spillway-conversation']);
    expect((await conversationsOf(pair)).every(({ name, session }) => name === null && session === null)).toBe(true);
  });

  it('is the named one where the client names it, or tells the id it was told, SPEC 1.2', async () => {
    const pair = await startAye();
    const named = { 'x-spillway-conversation': 'my plan: all of it' };
    const first = await send(pair, [user('One')], named);
    await send(pair, [user('Started over')], named);
    const id = String(first.headers['x-spillway-conversation']);
    const third = await send(pair, [user('And over')], { 'x-spillway-conversation': id });
    expect(third.headers['x-spillway-conversation']).toBe(id);
    expect(await onlyConversation(pair)).toMatchObject({ id, name: 'my plan: all of it', nodes: 6 });
  });

  it.each([
    ['session-id', (id: string) => [{ 'session-id': id }, {}]],
    ['thread-id', (id: string) => [{ 'thread-id': id }, {}]],
    ['x-session-id', (id: string) => [{ 'x-session-id': id }, {}]],
    ['x-session-affinity', (id: string) => [{ 'x-session-affinity': id }, {}]],
    ['x-claude-code-session-id', (id: string) => [{ 'x-claude-code-session-id': id }, {}]],
    ['prompt_cache_key in the body', (id: string) => [{}, { prompt_cache_key: id }]],
    ['a header before a field of the body', (id: string) => [{ 'thread-id': id }, { prompt_cache_key: 'other' }]],
    ['session-id before thread-id', (id: string) => [{ 'thread-id': 'other', 'session-id': id }, {}]],
  ] as [string, (id: string) => [Record<string, string>, object]][])(
    'is grouped with others by %s, and each stays its own, SPEC 1.2',
    async (_, given) => {
      const pair = await startAye();
      for (const text of ['A title, please', 'The dialogue']) await send(pair, [user(text)], ...given('s1'));
      await send(pair, [user('The dialogue')], ...given('s2'));
      const conversations = await conversationsOf(pair);
      expect(conversations.map(({ session }) => String(session)).toSorted()).toEqual(['s1', 's1', 's2']);
      expect(new Set(conversations.map(({ id }) => id)).size).toBe(3);
    },
  );
});

describe('beyond loopback', () => {
  const settings = { SPILLWAY_HOST: '0.0.0.0', SPILLWAY_ADMIN_TOKEN: 'an-admin-token-of-the-test' };

  async function listed(pair: StartedPair) {
    const response = await fetch(`${pair.spillway.url}/spillway/v1/conversations`, {
      headers: { 'x-spillway-admin-token': settings.SPILLWAY_ADMIN_TOKEN },
    });
    return ((await response.json()) as { data: { tenant: string; id: string; nodes: number }[] }).data;
  }

  it("every credential is a tenant, and none reads or writes what is another's, SPEC 1.1", async () => {
    const pair = await startAye(settings);
    const [alice, bob] = [{ authorization: 'Bearer sk-alice' }, { authorization: 'Bearer sk-bob' }];
    const named = { 'x-spillway-conversation': 'plan' };
    const mine = await send(pair, [user('One')], { ...alice, ...named });
    const theirs = await send(pair, [user('One')], { ...bob, ...named });
    const id = String(mine.headers['x-spillway-conversation']);
    expect(theirs.headers['x-spillway-conversation']).not.toBe(id);
    expect(theirs.headers['x-spillway-head']).not.toBe(mine.headers['x-spillway-head']);

    // Told the id, another tenant is told that there is no such conversation.
    const calls = pair.simulator.chatRequests().length;
    const headers = { ...bob, 'x-spillway-conversation': id };
    for (const append of [
      {},
      { 'x-spillway-append': 'true' },
      { 'x-spillway-append': 'true', 'x-spillway-predecessor': String(mine.headers['x-spillway-head']) },
    ]) {
      const refused = await send(pair, [user('Let me in')], { ...headers, ...append });
      expect(refused.status).toBe(404);
      expect(JSON.parse(refused.text)).toMatchObject({ error: { code: 'conversation_not_found' } });
    }
    expect(pair.simulator.chatRequests().length).toBe(calls);

    const conversations = await listed(pair);
    expect(conversations.map(({ nodes }) => nodes)).toEqual([2, 2]);
    const tenants = new Set(conversations.map(({ tenant }) => tenant));
    expect(tenants.size).toBe(2);
    for (const tenant of tenants) expect(tenant).toMatch(/^t_[\w-]{22}$/);
  });

  it('a configured header tells end users of one credential apart, on loopback too, SPEC 1.1', async () => {
    const pair = await startAye({ SPILLWAY_USER_HEADER: 'x-end-user' });
    for (const name of ['ada', 'bob', 'ada']) await send(pair, [user('One')], { 'x-end-user': name });
    const conversations = await conversationsOf(pair);
    expect(conversations.length).toBe(2);
    expect(JSON.stringify(conversations)).not.toContain('ada');
  });

  it('each credential is a tenant on loopback too where the setting says so, SPEC 1.1', async () => {
    const pair = await startPair({ SPILLWAY_TENANTS: 'credential' });
    const body = { model: 'm', messages: [{ role: 'user', content: 'The same words.' }] };
    const one = await pair.post(body, { authorization: 'Bearer sk-one' });
    const other = await pair.post(body, { authorization: 'Bearer sk-other' });
    expect(one.headers.get('x-spillway-conversation')).not.toBe(other.headers.get('x-spillway-conversation'));
  });

  describe('a request without any credential', () => {
    const open = { ...settings, SPILLWAY_UPSTREAM_KEY: 'sk-of-the-operator' };
    const nobody = { authorization: '' };

    it('passes untouched and unrecorded: nobody else who sends none reads it', async () => {
      const pair = await startAye(open);
      for (const headers of [nobody, { authorization: 'Bearer' }, { ...nobody, 'x-spillway-conversation': 'plan' }]) {
        const answer = await send(pair, [user('One')], headers);
        expect(answer.status).toBe(200);
        expect(answer.headers['x-spillway-action']).toBe('anonymous');
        expect(answer.headers).not.toHaveProperty('x-spillway-conversation');
      }
      expect(await listed(pair)).toEqual([]);
      expect(pair.logs.at(-1)).toMatchObject({ action: 'anonymous', status: 200 });
    });

    it('that needs the ledger is refused, and told what to do', async () => {
      const pair = await startAye(open);
      const thin = { ...nobody, 'x-spillway-conversation': 'plan', 'x-spillway-append': 'true' };
      for (const [text, headers] of [
        ['One', thin],
        ['/compact', nobody],
      ] as const) {
        const refused = await send(pair, [user(text)], headers);
        expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
          401,
          {
            error: {
              code: 'unauthorized',
              param: 'authorization',
              message: expect.stringContaining('SPILLWAY_TENANTS=single'),
            },
          },
        ]);
      }
      expect(pair.simulator.requests).toEqual([]);
    });

    it('belongs to the user whom a configured header names, or to the one tenant there is', async () => {
      const named = await startAye({ ...open, SPILLWAY_USER_HEADER: 'x-end-user' });
      for (const name of ['ada', 'bob', 'ada']) await send(named, [user('One')], { ...nobody, 'x-end-user': name });
      await send(named, [user('One')], { ...nobody, 'x-end-user': '' });
      expect((await listed(named)).length).toBe(2);

      const single = await startAye({ ...open, SPILLWAY_TENANTS: 'single' });
      for (const headers of [nobody, { authorization: 'Bearer sk-alice' }]) await send(single, [user('One')], headers);
      expect(await listed(single)).toMatchObject([{ tenant: 'local', nodes: 2 }]);
    });
  });

  it('the API is opened by the token alone, and a configured key is still lent to every client', async () => {
    const pair = await startAye(settings);
    const status = async (headers: Record<string, string>) =>
      (await fetch(`${pair.spillway.url}/spillway/v1/conversations`, { headers })).status;
    expect(await status({})).toBe(401);
    expect(await status({ authorization: 'Bearer wrong-token-of-the-test' })).toBe(401);
    expect(await status({ authorization: `Bearer ${settings.SPILLWAY_ADMIN_TOKEN}` })).toBe(200);
  });
});

describe('a thin client', () => {
  const thin = { 'x-spillway-conversation': 'thin', 'x-spillway-append': 'true' };

  it('sends what is new, and the ledger supplies the rest, SPEC 1.6', async () => {
    const pair = await startAye();
    await send(pair, [user('One')], thin);
    const call1 = { role: 'assistant', content: null, tool_calls: [call('c', '{}')] };
    const result = { role: 'tool', tool_call_id: 'c', content: 'seen' };
    await send(pair, [user('Two'), call1, result], thin);
    const third = await send(pair, [{ role: 'system', content: 'Be brief.' }, user('Three')], thin);
    expect(lastMessages(pair)).toEqual([
      { role: 'system', content: 'Be brief.' },
      user('One'),
      assistant('Aye.'),
      user('Two'),
      call1,
      result,
      assistant('Aye.'),
      user('Three'),
    ]);
    expect(third.status).toBe(200);
    const conversation = await onlyConversation(pair);
    expect(conversation.nodes).toBe(8);
    // A client with its full history meets the same nodes.
    await send(pair, [...lastMessages(pair), assistant('Aye.'), user('Four')].slice(1), {
      'x-spillway-conversation': 'thin',
    });
    expect((await onlyConversation(pair)).nodes).toBe(10);
  });

  it('may name the node that its messages follow; an unknown one, or conversation, is 404, SPEC 1.6', async () => {
    const pair = await startAye();
    const first = await send(pair, [user('One')], thin);
    await send(pair, [user('Two')], thin);
    const { id } = await onlyConversation(pair);
    const reply = (await nodesOf(pair, id))[1]?.id ?? '';
    await send(pair, [user('Zwei')], { ...thin, 'x-spillway-predecessor': reply });
    expect(lastMessages(pair)).toEqual([user('One'), assistant('Aye.'), user('Zwei')]);
    const { nodes } = await onlyConversation(pair);
    expect(nodes).toBe(6);

    const calls = pair.simulator.chatRequests().length;
    const unknown = { ...thin, 'x-spillway-predecessor': 'A'.repeat(32) };
    const missing = await send(pair, [user('Three')], unknown);
    expect([missing.status, JSON.parse(missing.text)]).toMatchObject([404, { error: { code: 'node_not_found' } }]);
    const elsewhere = await send(pair, [user('Three')], {
      ...unknown,
      'x-spillway-conversation': 'nobody',
      'x-spillway-predecessor': String(first.headers['x-spillway-head']),
    });
    expect([elsewhere.status, JSON.parse(elsewhere.text)]).toMatchObject([
      404,
      { error: { code: 'conversation_not_found' } },
    ]);
    expect(await onlyConversation(pair)).toMatchObject({ nodes });
    expect(pair.simulator.chatRequests().length).toBe(calls);
  });

  it('meets the same nodes when it sends again what got no answer, SPEC 1.4', async () => {
    let works = false;
    const pair = await startPair({}, { script: () => (works ? null : serverError()) });
    const headers = { 'x-spillway-conversation': 'again', 'x-spillway-append': 'true' };
    const body = { model: 'm', messages: [user('Are you there?')] };
    for (let attempt = 0; attempt < 2; attempt++) expect((await pair.post(body, headers)).status).toBe(500);
    works = true;
    const answered = await pair.post(body, headers);
    expect(answered.status).toBe(200);
    const nodes = await nodesOf(pair, answered.headers.get('x-spillway-conversation') ?? '');
    expect(nodes.map(({ role }) => role)).toEqual(['user', 'llm']);
    // The whole reply was stored before its headers were sent, and they name it.
    expect(answered.headers.get('x-spillway-head')).toBe(nodes[1]?.id);
  });

  it('is told 409 while a turn runs where it would append, and is served after it, SPEC 1.6', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const pair = await startPair(
      {},
      { script: async ({ messages }) => (messages.length === 1 ? held.then(() => say('Aye.')) : say('Aye.')) },
    );
    const running = send(pair, [user('One')], thin);
    await pair.simulator.waitFor((request) => request.state === 'answering');
    const refused = await send(pair, [user('Two')], thin);
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      409,
      { error: { code: 'turn_in_progress', type: 'invalid_request_error' } },
    ]);
    release();
    expect((await running).status).toBe(200);
    expect((await send(pair, [user('Two')], thin)).status).toBe(200);
    expect(lastMessages(pair)).toEqual([user('One'), assistant('Aye.'), user('Two')]);
  });

  it('is told 404 of a conversation that was deleted, until a full history brings it back, SPEC 2.3, 2.6', async () => {
    const pair = await startAye();
    await send(pair, [user('One')], thin);
    const { id, head } = await onlyConversation(pair);
    await fetch(`${pair.spillway.url}/spillway/v1/conversations/${id}`, { method: 'DELETE' });
    for (const more of [{}, { 'x-spillway-predecessor': head }]) {
      const refused = await send(pair, [user('Two')], { ...thin, ...more });
      expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
        404,
        { error: { code: 'conversation_not_found' } },
      ]);
    }
    expect(await conversationsOf(pair)).toEqual([]);
    await send(pair, [user('One'), assistant('Aye.'), user('Two')], { 'x-spillway-conversation': 'thin' });
    expect((await send(pair, [user('Three')], thin)).status).toBe(200);
    expect(lastMessages(pair).length).toBe(5);
  });

  it("waits for a full history's turn too", async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const pair = await startPair({}, { script: async () => held.then(() => say('Aye.')) });
    const running = send(pair, [user('One')], { 'x-spillway-conversation': 'thin' });
    await pair.simulator.waitFor((request) => request.state === 'answering');
    expect((await send(pair, [user('Two')], thin)).status).toBe(409);
    release();
    await running;
  });

  it('does not read a reply that broke off; a client that carries it itself does, SPEC 2.3', async () => {
    const provider = await startProvider((received, response) => {
      if (received.body.includes('Two')) return void response.end(completion('Aye.'));
      response.writeHead(200, SSE_HEADERS);
      response.write(chunkEvent({ content: 'Half a' }), () => response.destroy());
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const broken = await sendChat(pair.spillway.url, { model: 'any', stream: true, messages: [user('One')] }, thin)
      .answer;
    await expect(broken.body()).rejects.toThrow('broke off');
    const { id, head } = await onlyConversation(pair);
    const [asked, half] = await nodesOf(pair, id);
    expect(half?.content).toEqual(assistant('Half a'));
    expect(head).toBe(asked?.id);

    const received = () => messagesIn(provider.received.at(-1)?.body.toString() ?? '');
    await send(pair, [user('Two')], { ...thin, 'x-spillway-predecessor': half?.id ?? '' });
    expect(received()).toEqual([user('One'), user('Two')]);
    await send(pair, [user('One'), assistant('Half a'), user('Two')], { 'x-spillway-conversation': 'thin' });
    expect(received()).toEqual([user('One'), assistant('Half a'), user('Two')]);
  });

  it('that spawns another says so: nothing of that turn moves HEAD, and its first node names the spawner, SPEC 2.2, 8.3', async () => {
    const pair = await startAye();
    await send(pair, [user('One')], thin);
    const before = await onlyConversation(pair);
    await send(pair, [user('Sub task')], {
      'x-spillway-conversation': 'thin',
      'x-spillway-caller': before.head,
      'x-spillway-advance-head': 'false',
    });
    const after = await onlyConversation(pair);
    expect(after).toMatchObject({ head: before.head, nodes: before.nodes + 2 });
    expect((await nodesOf(pair, after.id)).map((node) => node.caller)).toEqual([null, null, before.head, null]);
  });
});

describe('an operator who deletes', () => {
  it('a branch or a conversation is told 409 while a turn runs there, and deletes it after', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const pair = await startPair({}, { script: async () => held.then(() => say('Aye.')) });
    const running = send(pair, [user('One')]);
    await pair.simulator.waitFor((request) => request.state === 'answering');
    const { id, head } = await onlyConversation(pair);
    const remove = async (path: string) =>
      (await fetch(`${pair.spillway.url}/spillway/v1/conversations/${id}${path}`, { method: 'DELETE' })).status;
    for (const path of ['', '?erase=true', `/branches/${head}`]) expect(await remove(path)).toBe(409);
    release();
    expect((await running).status).toBe(200);
    expect(await remove('?erase=true')).toBe(204);
    expect(await conversationsOf(pair)).toEqual([]);
    // The client still has it all.
    await send(pair, [user('One'), assistant('Aye.'), user('Two')]);
    expect(await onlyConversation(pair)).toMatchObject({ id, nodes: 4 });
  });
});
