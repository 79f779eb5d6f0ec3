import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, type NewNode } from '../src/core/node.js';
import type { Call, Ledger, OpenTurn } from '../src/core/ports.js';
import { betterSqlite, nodeSqlite, openSqliteLedger, type OpenSqlite } from '../src/ledger/sqlite.js';
import { median, rounded } from './statistics.js';
import type { Table } from './table.js';

const TURNS = 300;
const HISTORIES = [10, 1_000, 10_000];

/** Turns a second in one conversation, one after the other, and the SQL statements of each, by the length of its history. */
export async function measureLedger(): Promise<Table> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-bench-'));
  try {
    const rows: Table['rows'][number][] = [];
    for (const history of HISTORIES) rows.push(await measureTurns(join(folder, `${history}.db`), history));
    return {
      title: 'Turns in the SQLite ledger',
      note: 'Open and close of a turn that adds a message and a reply of 200 characters; BEGIN and COMMIT count too.',
      rows: rows.map((row) => ({ ...row, 'speed / shortest': ratioOf(row, rows[0]) })),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function ratioOf(row: Table['rows'][number], first: Table['rows'][number] | undefined): number {
  return rounded(Number(row['turns a second']) / Number(first?.['turns a second']));
}

async function measureTurns(file: string, history: number): Promise<Table['rows'][number]> {
  let statements = 0;
  const sqlite = await countingSqlite(() => (statements += 1));
  const ledger = await openSqliteLedger({ file, durability: 'normal', busyTimeoutMs: 1_000, clock: Date.now }, sqlite);
  try {
    const chain = Array.from({ length: history }, (_, index) => idOf(index));
    await ledger.openTurn(turnOf(chain));
    statements = 0;
    const times: number[] = [];
    for (let turn = 0; turn < TURNS; turn += 1) {
      const asked = [...chain, idOf(chain.length)];
      const startedAt = performance.now();
      await takeTurn(ledger, asked);
      times.push(performance.now() - startedAt);
      chain.push(idOf(chain.length), idOf(chain.length + 1));
    }
    return {
      history,
      'turns a second': rounded(1_000 / median(times)),
      'statements a turn': rounded(statements / TURNS),
    };
  } finally {
    await ledger.close();
  }
}

async function takeTurn(ledger: Ledger, chain: readonly string[]): Promise<void> {
  const { conversation } = turnOf(chain);
  const head = chain.at(-1) ?? ROOT;
  await ledger.openTurn(turnOf(chain));
  const reply = nodeAt(chain, chain.length);
  await ledger.closeTurn({
    conversation,
    call: callOf(head, reply.id),
    reduction: null,
    replies: [reply],
    advanceHead: true,
    counts: new Map(),
    tokenizer: null,
    marks: [],
  });
}

function turnOf(chain: readonly string[]): OpenTurn {
  return {
    conversation: {
      tenant: 'local',
      id: 'c_bench',
      dialect: 'chat-completions',
      canonicalVersion: 1,
      name: null,
      session: null,
    },
    policy: 'spine',
    chain,
    node: (index) => nodeAt(chain, index),
    instructions: [],
    advanceHead: true,
    expectedHead: null,
    model: 'bench',
    tokenizer: null,
  };
}

function nodeAt(chain: readonly string[], index: number): NewNode {
  return {
    id: idOf(index),
    predecessor: chain[index - 1] ?? ROOT,
    caller: null,
    role: index % 2 === 0 ? 'user' : 'llm',
    name: null,
    content: 'x'.repeat(200),
    metadata: {},
    tokens: null,
    tokenizer: null,
  };
}

function callOf(head: string, reply: string): Call {
  return {
    id: `call_${head}`,
    conversation: 'c_bench',
    model: 'bench',
    upstream: 'http://127.0.0.1/v1',
    action: 'none',
    manifest: { version: 1, head, summary: null, pinned: [], omitted: [], instructions: [], reduction: null },
    replies: [reply],
    outcome: 'complete',
    status: 200,
    stopReason: 'stop',
    overflow: null,
    estimatedTokens: null,
    usage: { inputTokens: 500, outputTokens: 25, cachedTokens: null, reasoningTokens: null },
    bodyDigest: '',
    startedAt: 0,
    overheadMs: 0,
    durationMs: 0,
  };
}

/** As scattered as digests are. */
function idOf(index: number): string {
  return ((index * 2_654_435_761) % 2 ** 32).toString(36).padStart(8, '0') + String(index).padStart(24, '0');
}

async function countingSqlite(onStatement: () => void): Promise<OpenSqlite> {
  const open = (await betterSqlite()) ?? nodeSqlite();
  if (open === null) throw new Error('no SQLite is installed');
  return (file) => {
    const handle = open(file);
    return {
      exec: (sql) => handle.exec(sql),
      close: () => handle.close(),
      prepare(sql) {
        const statement = handle.prepare(sql);
        return {
          run(...values) {
            onStatement();
            return statement.run(...values);
          },
          all(...values) {
            onStatement();
            return statement.all(...values);
          },
        };
      },
    };
  };
}
