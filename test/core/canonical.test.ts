import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chainIds, nodeId, rootDigest } from '../../src/core/canonical.js';
import type { Message } from '../../src/core/message.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { hash, turn, user } from './builders.js';

type Wire = Readonly<Record<string, unknown>>;

function idOf(source: Wire): string {
  const read = chatCompletions.readMessage(source);
  if (read === null) throw new Error('unreadable');
  return nodeId(hash, 'root', read);
}

const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at": 1}' } };
const said: Wire = { role: 'assistant', content: 'Done.' };
const asked: Wire = { role: 'user', content: 'Go on.' };
const calling: Wire = { role: 'assistant', content: null, tool_calls: [call] };
const seen: Wire = { role: 'tool', tool_call_id: 'c1', content: 'ok' };
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };

describe('what does not count for identity, SPEC 1.3', () => {
  it.each<readonly [string, Wire, Wire]>([
    [
      'key order',
      calling,
      { tool_calls: [{ function: call.function, type: 'function', id: 'c1' }], content: null, role: 'assistant' },
    ],
    ['unknown keys', asked, { ...asked, client_only: { at: 1 } }],
    ['an empty string against null', calling, { ...calling, content: '' }],
    ['null against absent', calling, { role: 'assistant', tool_calls: [call] }],
    [
      'a text part array against a string',
      asked,
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Go ' },
          { type: 'text', text: 'on.' },
        ],
      },
    ],
    [
      'cache marks',
      asked,
      { role: 'user', content: [{ type: 'text', text: 'Go on.', cache_control: { type: 'ephemeral' } }] },
    ],
    ['annotations', said, { ...said, annotations: [{ type: 'url_citation' }] }],
    ['reasoning echoes', said, { ...said, reasoning_content: 'Let me think.' }],
    ['signed reasoning echoes', said, { ...said, reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] }],
    ['item ids and statuses', said, { ...said, id: 'msg_1', status: 'completed' }],
    ['white space at the end of assistant text', said, { ...said, content: 'Done. \n' }],
    ['the name of an assistant message', said, { ...said, name: 'planner' }],
    ['a system message called developer', { role: 'system', content: 'x' }, { role: 'developer', content: 'x' }],
    [
      'the detail of an image',
      { role: 'user', content: [image] },
      { role: 'user', content: [{ ...image, image_url: { ...image.image_url, detail: 'low' } }] },
    ],
    [
      'the key order of arguments given as an object',
      { ...calling, tool_calls: [{ ...call, function: { name: 'look', arguments: { a: 1, b: 2 } } }] },
      { ...calling, tool_calls: [{ ...call, function: { name: 'look', arguments: { b: 2, a: 1 } } }] },
    ],
  ])('%s', (_name, one, other) => {
    expect(idOf(other)).toBe(idOf(one));
  });

  it('indentation of the request', () => {
    const body = { model: 'm', messages: [asked, calling, seen] };
    const ids = (text: string) => chainIds(hash, 'root', chatCompletions.read(JSON.parse(text))?.messages ?? []);
    expect(ids(JSON.stringify(body, null, 4))).toEqual(ids(JSON.stringify(body)));
  });
});

describe('what counts for identity, SPEC 1.3', () => {
  it.each<readonly [string, Wire, Wire]>([
    ['the role', asked, { ...said, content: 'Go on.' }],
    ['the text', asked, { ...asked, content: 'Go on' }],
    ['white space at the end of user text', asked, { ...asked, content: 'Go on. ' }],
    ['white space at the end of a result', seen, { ...seen, content: 'ok ' }],
    ['the id of a call', calling, { ...calling, tool_calls: [{ ...call, id: 'c2' }] }],
    [
      'the name of a call',
      calling,
      { ...calling, tool_calls: [{ ...call, function: { ...call.function, name: 'see' } }] },
    ],
    [
      'arguments as the string sent',
      calling,
      { ...calling, tool_calls: [{ ...call, function: { ...call.function, arguments: '{"at":1}' } }] },
    ],
    [
      'the order of calls',
      { ...calling, tool_calls: [call, { ...call, id: 'c2' }] },
      { ...calling, tool_calls: [{ ...call, id: 'c2' }, call] },
    ],
    ['which call a result answers', seen, { ...seen, tool_call_id: 'c2' }],
    ['the text of a result', seen, { ...seen, content: '[cleared]' }],
    ['the name of a user message', asked, { ...asked, name: 'Ada' }],
    [
      'the bytes of media',
      { role: 'user', content: [image] },
      { role: 'user', content: [{ ...image, image_url: { url: 'data:image/png;base64,AAAB' } }] },
    ],
    [
      'a lone surrogate against what it would be replaced by',
      { ...asked, content: '\ud83d' },
      { ...asked, content: '\ufffd' },
    ],
    ['two lone surrogates', { ...asked, content: '\ud83d' }, { ...asked, content: '\ud83e' }],
  ])('%s', (_name, one, other) => {
    expect(idOf(other)).not.toBe(idOf(one));
  });
});

describe('node ids, SPEC 1.4', () => {
  const history: readonly Message[] = [...turn('a'), ...turn('b'), ...turn('c')];

  it('name a whole prefix: what is equal up to a message is the same node', () => {
    const ids = chainIds(hash, 'root', history);
    expect(chainIds(hash, 'root', history.slice(0, 3))).toEqual(ids.slice(0, 3));
    const edited = chainIds(
      hash,
      'root',
      history.map((each, index) => (index === 2 ? user('edited') : each)),
    );
    expect(edited.slice(0, 2)).toEqual(ids.slice(0, 2));
    expect(edited.slice(2).some((id) => ids.includes(id))).toBe(false);
  });

  it('repeat nothing where a message is repeated', () => {
    const ids = chainIds(hash, 'root', [user('x'), user('x'), user('x')]);
    expect(new Set(ids).size).toBe(3);
  });

  it('take one hash a message', () => {
    let hashes = 0;
    const counting = (text: string): string => {
      hashes++;
      return hash(text);
    };
    chainIds(counting, 'root', history);
    expect(hashes).toBe(history.length);
  });

  it('hang on a root that carries tenant, dialect and version, so no two tenants share one (SPEC 1.1)', () => {
    const roots = [
      rootDigest(hash, 'local', 'chat-completions', 1),
      rootDigest(hash, 'other', 'chat-completions', 1),
      rootDigest(hash, 'local', 'responses', 1),
      rootDigest(hash, 'local', 'chat-completions', 2),
    ];
    expect(new Set(roots).size).toBe(roots.length);
    expect(new Set(roots.map((root) => chainIds(hash, root, history)[0])).size).toBe(roots.length);
  });

  it('cannot be moved from one member to another by what the text holds', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (text, name) => {
        fc.pre(name !== '');
        const named = idOf({ role: 'user', content: text, name });
        expect(idOf({ role: 'user', content: `${text}${name}` })).not.toBe(named);
        expect(idOf({ role: 'user', content: `${text}",${JSON.stringify(name)}` })).not.toBe(named);
      }),
    );
  });
});
