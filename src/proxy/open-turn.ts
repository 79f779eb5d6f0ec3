import { budgetShare, calibrationOf, reserveTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { CANONICAL_VERSION, chainIds, nodeId, rootDigest } from '../core/canonical.js';
import { createPurse } from '../core/compaction/purse.js';
import { SpillwayError } from '../core/errors.js';
import type { Message } from '../core/message.js';
import { isCommand, ROOT } from '../core/node.js';
import type { Node } from '../core/node.js';
import type { Clock, Hash, Ledger, NewConversation, Spine, SummaryPolicy } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
import type { WindowScope } from '../core/windows.js';
import type { Dialect, ReadRequest, WireMessage } from '../dialects/dialect.js';
import { byteBound } from '../tokens/byte-bound.js';
import type { PatientCounter } from '../tokens/counter.js';
import { readCompactCommand, taggedCommands } from './command.js';
import type { HeldHistory } from './held-history.js';
import { identify, namedId, policyFor, sessionOf } from './identify.js';
import { createMeasure } from './measure.js';
import type { ProxyRequest } from './request.js';
import type { RunningTurns } from './running-turns.js';
import type { Leave, SharedTurns } from './shared-turns.js';
import type { SpillwayHeaders } from './spillway-headers.js';
import type { Sign } from './tenant.js';
import { chainNodeBuilder } from './turn-nodes.js';
import { TurnWriter } from './turn-writer.js';
import type { ModelBelief, RequestBody, Turn } from './turn.js';

/** A request that was read and belongs to a tenant, not yet to a conversation. */
export interface Incoming {
  readonly request: ProxyRequest;
  readonly dialect: Dialect;
  readonly read: ReadRequest;
  readonly body: RequestBody;
  readonly options: SpillwayHeaders;
  readonly tenant: string;
  /** What of its history the upstream holds; null where it carries or appends all of it. */
  readonly held: HeldHistory | null;
  readonly closed: AbortSignal;
}

export interface OpenTurnDeps {
  readonly ledger: Ledger;
  readonly running: RunningTurns;
  readonly sharedTurns: SharedTurns;
  readonly hash: Hash;
  readonly sign: Sign;
  readonly policy: SummaryPolicy | 'auto';
  readonly clock: Clock;
  readonly purse: { readonly calls: number; readonly durationMs: number };
  /** Share of the window below which nothing has to be counted. */
  readonly trigger: number;
  /** Whether `/compact` is a command here; where nothing is ever rewritten it is text like any other. */
  readonly readsCommands: boolean;
  belief(scope: WindowScope, model: string): Promise<ModelBelief>;
  loadCounter(model: string): Promise<PatientCounter>;
}

/** Where a request's messages stand: ids, and how each is sent. */
interface Placed {
  readonly conversation: NewConversation;
  readonly messages: readonly Message[];
  readonly chain: readonly string[];
  readonly wire: readonly WireMessage[];
  /** Ids of commands that the ledger already told of. */
  readonly commands: ReadonlySet<string>;
  /** Where HEAD was when they were placed after it; null where it plays no part. */
  readonly after: string | null;
}

/**
 * Makes a request's nodes durable and gathers what its view needs (SPEC 2.4, 2.7). Rejects with `conversation_not_found`,
 * `node_not_found`, `turn_in_progress`, `head_moved`, `store_unavailable`.
 */
export async function openTurn(incoming: Incoming, deps: OpenTurnDeps): Promise<Turn> {
  const { read, options, dialect } = incoming;
  const policy = policyFor(options.conversation, deps.policy);
  const placed = await place(incoming, policy, deps);
  const scope = { tenant: incoming.tenant, upstream: incoming.request.upstream.baseUrl };
  const belief = await deps.belief(scope, read.model);
  const tokenizer = await tokenizerIfNeeded(incoming, belief, deps);

  const spine = spineOf(placed, deps);
  const instructions = read.instructions.map((message) => {
    const content = JSON.stringify(message.source);
    return { digest: deps.hash(content), content };
  });
  const writer = new TurnWriter(deps.ledger, placed.conversation, options.advanceHead);
  const enter = (): Promise<Leave> => deps.sharedTurns.enter(placed.conversation, placed.chain.at(-1) ?? '');
  const isNew = placed.after === ROOT;
  let leave = options.append && !isNew ? await enter() : null;
  const opened = await writer
    .open({
      policy,
      chain: placed.chain,
      expectedHead: placed.after,
      node: chainNodeBuilder(spine, options.caller),
      instructions,
      model: read.model,
      tokenizer,
    })
    .catch(async (error: unknown) => {
      await leave?.();
      throw error instanceof SpillwayError && error.code === 'head_moved' ? overtaken() : error;
    });
  // Its nodes are there by now, so that it goes on in any case.
  if (options.append && isNew) leave = await enter().catch(() => null);
  const commands = new Set(opened.commands);
  const known = spine.map((node) => (commands.has(node.id) ? { ...node, command: true } : node));
  const measure = createMeasure({
    dialect,
    read,
    spine: known,
    stored: opened.counts,
    viewStart: opened.active === null ? 0 : placed.chain.indexOf(opened.active.last) + 1,
    loadCounter: () => deps.loadCounter(read.model),
  });
  return {
    ...incoming,
    conversation: placed.conversation,
    policy,
    spine: known,
    wire: placed.wire,
    thin: options.append,
    instructionDigests: instructions.map((instruction) => instruction.digest),
    hash: deps.hash,
    purse: createPurse(deps.purse, deps.clock),
    opened,
    belief,
    limits: limitsOf(belief, read, calibrationOf(opened.match)),
    measure,
    writer,
    leave: leave ?? (async () => undefined),
  };
}

/** Nothing is translated: what was said in one format cannot be appended to in another. */
function otherDialect({ dialect }: { readonly dialect: string }): SpillwayError {
  const reason = `this conversation is one of ${dialect}; append to it in that format, or give this one a name of its own`;
  return new SpillwayError('invalid_header', reason, 'x-spillway-conversation');
}

/** Another process appends too: in this one the place is claimed. */
function overtaken(): SpillwayError {
  const reason = 'another request was appended while this one was being placed; read where HEAD is and send again';
  return new SpillwayError('head_moved', reason, 'x-spillway-append');
}

function limitsOf(belief: ModelBelief, read: ReadRequest, calibration: number): Limits | null {
  const { windowTokens, capability } = belief;
  if (windowTokens === null) return null;
  return { windowTokens, reserveTokens: reserveTokens(windowTokens, read.outputCap, capability), calibration };
}

/** Stored counts are asked for only where the bytes alone do not show that all fits (SPEC 7.9). */
async function tokenizerIfNeeded(incoming: Incoming, belief: ModelBelief, deps: OpenTurnDeps): Promise<string | null> {
  const limits = limitsOf(belief, incoming.read, 1);
  if (limits === null) return null;
  const media = [...incoming.read.instructions, ...incoming.read.messages].flatMap((message) => message.media);
  const bound = incoming.read.selfContained ? byteBound(incoming.body.textBytes, media) : null;
  if (bound !== null && !incoming.options.append && budgetShare(bound, limits) < deps.trigger) return null;
  return (await deps.loadCounter(incoming.read.model)).tokenizer;
}

async function place(incoming: Incoming, policy: SummaryPolicy, deps: OpenTurnDeps): Promise<Placed> {
  if (incoming.held !== null) return placeHeld(incoming, incoming.held, deps.hash);
  return incoming.options.append ? placeThin(incoming, policy, deps) : placeFull(incoming, deps.hash);
}

/**
 * SPEC 1.7: the request's messages follow what they refer to. An id names its whole prefix, so that an item is the node that was
 * recorded for it exactly if it stands in the same place.
 */
function placeHeld({ read, dialect, tenant }: Incoming, held: HeldHistory, hash: Hash): Placed {
  const messages: Message[] = [];
  const chain: string[] = [];
  const wire: WireMessage[] = [];
  const add = (message: Message, item: WireMessage): void => {
    const before = chain.at(-1) ?? rootDigest(hash, tenant, dialect.name, CANONICAL_VERSION);
    messages.push(message);
    chain.push(nodeId(hash, before, message));
    wire.push(item);
  };
  const addStored = (node: Node): void => {
    const source: unknown = JSON.parse(node.content);
    add(readStored(source, dialect), { kind: 'stored', source });
  };
  for (const node of held.before) addStored(node);
  const kept = keptItems(read);
  for (const [index, message] of read.messages.entries()) {
    const node = held.items.get(index);
    const named = held.items.get(index - 1);
    if (node === undefined) {
      const item = kept[index];
      if (item !== undefined) add(message, item);
      // Its reasoning was named before it: the ledger has both as one.
      if (named !== undefined && chain.at(-1) === named.id) {
        wire[wire.length - 1] = { kind: 'stored', source: JSON.parse(named.content) };
      }
    } else if (!isNamedAgain(index, node, chain.at(-1) ?? null)) {
      addStored(node);
    }
  }
  return {
    conversation: held.conversation,
    messages,
    chain,
    wire,
    commands: new Set([...held.before, ...held.items.values()].filter(isCommand).map((node) => node.id)),
    after: null,
  };

  /** Whether the entry behind a reference stands for the same message: reasoning and what follows it are one. */
  function isNamedAgain(index: number, node: Node, before: string | null): boolean {
    const next = read.messages[index + 1];
    const nextNode = held.items.get(index + 1);
    if (nextNode !== undefined) return nextNode.id === node.id;
    const root = rootDigest(hash, tenant, dialect.name, CANONICAL_VERSION);
    return next !== undefined && nodeId(hash, before ?? root, next) === node.id;
  }
}

function placeFull(incoming: Incoming, hash: Hash): Placed {
  const { read, options, tenant, dialect, request } = incoming;
  const { conversation, chain } = identify({
    tenant,
    dialect: dialect.name,
    messages: read.messages,
    named: options.conversation,
    session: sessionOf(request.headers) ?? read.session,
    hash,
  });
  return { conversation, chain, messages: read.messages, wire: keptItems(read), commands: new Set(), after: null };
}

/** SPEC 1.6: the request's messages follow HEAD, or the node it names, and the ledger supplies what is before. */
async function placeThin(incoming: Incoming, policy: SummaryPolicy, deps: OpenTurnDeps): Promise<Placed> {
  const { read, options, tenant, dialect } = incoming;
  const named = options.conversation ?? '';
  const key = { tenant, id: namedId(deps.hash, tenant, dialect.name, named) };
  const stored = await storedSpine(key, options.predecessor, policy, deps.ledger);
  if (stored !== null && stored.conversation.dialect !== dialect.name) throw otherDialect(stored.conversation);
  const root = rootDigest(deps.hash, tenant, dialect.name, CANONICAL_VERSION);
  const before = stored === null ? [] : await withoutIncompleteReply(stored, deps.ledger);
  const end = before.at(-1)?.id;
  if (end !== undefined && options.predecessor === null) {
    deps.running.refuseAt(key, end);
    await deps.sharedTurns.refuseAt(key, end);
  }
  const nodes = withoutUnanswered(before, root, read.messages, deps.hash);

  const sources = nodes.map((node): unknown => JSON.parse(node.content));
  const earlier = sources.map((source) => readStored(source, dialect));
  return {
    conversation: stored?.conversation ?? {
      ...key,
      dialect: dialect.name,
      canonicalVersion: CANONICAL_VERSION,
      name: named === key.id ? null : named,
      session: sessionOf(incoming.request.headers) ?? read.session,
    },
    messages: [...earlier, ...read.messages],
    chain: [...nodes.map((node) => node.id), ...chainIds(deps.hash, nodes.at(-1)?.id ?? root, read.messages)],
    wire: [...sources.map((source): WireMessage => ({ kind: 'stored', source })), ...keptItems(read)],
    commands: new Set(nodes.filter(isCommand).map((node) => node.id)),
    // Where HEAD is by now may be another place than the client means (SPEC 1.6).
    after: options.predecessor === null ? (stored?.conversation.head ?? ROOT) : null,
  };
}

function readStored(source: unknown, dialect: Dialect): Message {
  const message = dialect.readMessage(source);
  if (message === null) throw new SpillwayError('store_unavailable', 'a stored message cannot be read in this dialect');
  return message;
}

/** Null: there is no such conversation yet, and the first message starts it. A deleted one is not there for whoever adds to it. */
async function storedSpine(
  key: { readonly tenant: string; readonly id: string },
  predecessor: string | null,
  policy: SummaryPolicy,
  ledger: Ledger,
): Promise<Spine | null> {
  if (predecessor === null && (await ledger.conversation(key.id, key.tenant)) === null) return null;
  const spine = await ledger.spine(key, predecessor, policy);
  if (spine.conversation.deletedAt === null) return spine;
  throw new SpillwayError(
    'conversation_not_found',
    'This conversation was deleted; a request that carries its whole history brings it back.',
    'x-spillway-conversation',
  );
}

/** SPEC 2.3: where the ledger supplies the view, a reply that never came to its end is left out. */
async function withoutIncompleteReply(spine: Spine, ledger: Ledger): Promise<readonly Node[]> {
  const last = spine.nodes.at(-1);
  if (last?.role !== 'llm') return spine.nodes;
  const calls = await ledger.callsOfReply(spine.conversation, last.id);
  const incomplete = calls.length > 0 && calls.every((call) => call.outcome !== 'complete');
  return incomplete ? spine.nodes.slice(0, -1) : spine.nodes;
}

/**
 * A client that got no answer sends its messages again, and meets the same nodes (SPEC 1.4): where the spine ends in these very
 * messages, they are the ones.
 */
function withoutUnanswered(
  nodes: readonly Node[],
  root: string,
  messages: readonly Message[],
  hash: Hash,
): readonly Node[] {
  const before = nodes.slice(0, -messages.length);
  if (before.length !== nodes.length - messages.length) return nodes;
  const ids = chainIds(hash, before.at(-1)?.id ?? root, messages);
  return ids.every((id, index) => id === nodes[before.length + index]?.id) ? before : nodes;
}

function keptItems(read: ReadRequest): readonly WireMessage[] {
  return read.messages.map((_, index) => ({ kind: 'kept', index: read.instructions.length + index }));
}

/** The spine with the commands known so far: told by the ledger, proven by a tag, or the last message itself. */
function spineOf(placed: Placed, deps: OpenTurnDeps): readonly SpineNode[] {
  const tagged = new Set(taggedCommands(placed.chain, placed.messages, deps.sign));
  const lastIndex = placed.messages.length - 1;
  return placed.messages.map((message, index) => {
    const id = placed.chain[index] ?? '';
    const asks = index === lastIndex && deps.readsCommands && readCompactCommand(message) !== null;
    return { id, message, command: asks || tagged.has(index) || placed.commands.has(id) };
  });
}
