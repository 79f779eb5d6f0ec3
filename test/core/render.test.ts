import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { manifestOf, readsOf, render, substitutes, tailIndices, viewMessages } from '../../src/core/render.js';
import type { SpineNode } from '../../src/core/render.js';
import { forms, spineOf, summaryMessage, summaryOf, system, turn, user } from './builders.js';

const messages = [...turn('a'), ...turn('b'), ...turn('c'), user('d')];
const spine = spineOf(messages);

const asCommands = (nodes: readonly SpineNode[], ...indices: readonly number[]): readonly SpineNode[] =>
  nodes.map((node, index) => (indices.includes(index) ? { ...node, command: true } : node));

describe('a view', () => {
  it('without a summary is the spine, SPEC 4.1', () => {
    const view = render(spine, null);
    expect(viewMessages(spine, view, forms)).toEqual(messages);
    expect(substitutes(view)).toBe(false);
  });

  it('has the summary where its segment stood and every message behind it, SPEC 4.1', () => {
    const view = render(spine, summaryOf(spine, 4));
    expect(viewMessages(spine, view, forms)).toEqual([summaryMessage('record'), ...messages.slice(4)]);
    expect(substitutes(view)).toBe(true);
  });

  it('of a fork from inside the segment is raw, SPEC 4.2', () => {
    const fork = spineOf([...messages.slice(0, 3), user('else')]);
    expect(render(fork, summaryOf(spine, 4))).toEqual(render(fork, null));
  });

  it('keeps covered instructions verbatim, in order, the same text once, before the summary, SPEC 4.8', () => {
    const list = [user('a'), system('first'), ...turn('b'), system('second'), system('first'), ...turn('c')];
    const nodes = spineOf(list);
    const view = render(nodes, summaryOf(nodes, 6));
    expect(viewMessages(nodes, view, forms)).toEqual([
      system('first'),
      system('second'),
      summaryMessage('record'),
      ...turn('c'),
    ]);
  });

  it('leaves commands and their answers out, inside a coverage and behind it, SPEC 4.9', () => {
    const nodes = asCommands(spine, 2, 3, 5);
    const raw = render(nodes, null);
    expect(raw.omitted).toEqual([2, 3, 5]);
    expect(substitutes(raw)).toBe(true);
    const view = render(nodes, summaryOf(nodes, 4));
    expect(view.omitted).toEqual([2, 3, 5]);
    expect(tailIndices(view)).toEqual([4, 6]);
  });

  it('is the same for the same input, and depends on nothing else, SPEC 4.2, 4.5', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 7 }), fc.subarray([0, 1, 2, 3, 4, 5, 6]), (count, commands) => {
        const nodes = asCommands(spine, ...commands);
        const summary = count === 0 ? null : summaryOf(nodes, count);
        const view = render(nodes, summary);
        expect(render([...nodes], summary)).toEqual(view);
        // Nothing is read twice and nothing is left out but what is covered or a command.
        const places = [...tailIndices(view), ...view.omitted].toSorted((a, b) => a - b);
        const outside = nodes.flatMap((node, index) => (index >= count || node.command ? [index] : []));
        expect(places).toEqual(outside);
      }),
    );
  });
});

const noDigests = { instructions: [], reduction: null };

describe('a manifest', () => {
  it('names all that is needed to render the view again, SPEC 4.6', () => {
    const list = [system('rule'), ...turn('a'), ...turn('b'), user('c')];
    const nodes = asCommands(spineOf([user('start'), ...list]), 3);
    const summary = summaryOf(nodes, 5);
    const view = render(nodes, summary);
    expect(manifestOf(nodes, view, { instructions: ['digest'], reduction: null })).toEqual({
      version: 1,
      head: nodes.at(-1)?.id,
      summary: 'summary_1',
      pinned: [nodes[1]?.id],
      omitted: [nodes[3]?.id],
      instructions: ['digest'],
      reduction: null,
    });
  });

  it('tells the ids whose content entered the prompt, in the order read, SPEC 2.5', () => {
    const nodes = asCommands(spineOf([user('start'), system('rule'), ...turn('a'), ...turn('b'), user('c')]), 3, 4);
    const chain = nodes.map((node) => node.id);
    const summary = summaryOf(nodes, 4);
    const reads = readsOf(chain, manifestOf(nodes, render(nodes, summary), noDigests), summary);
    expect(reads).toEqual([chain[1], 'summary_1', chain[5], chain[6]]);
    const raw = readsOf(chain, manifestOf(nodes, render(nodes, null), noDigests), null);
    expect(raw).toEqual(chain.filter((_, index) => index !== 3 && index !== 4));
  });
});
