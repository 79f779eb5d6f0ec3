import { describe, expect, it } from 'vitest';
import { summaryMessage } from '../../src/dialects/chat-summary.js';
import type { CompactedItem } from '../../src/dialects/dialect.js';
import { responsesCompaction as form } from '../../src/dialects/responses-compaction.js';

const summary = JSON.stringify(summaryMessage('S').source);

describe('expanding compacted items', () => {
  it('puts what they stand for in their place, and all other characters stay (SPEC 4.3)', () => {
    const text =
      '{ "model":"m", "input" : [ {"role":"developer","content":"a\\u0062"},\n {"encrypted_content":"A", "type":"compaction"} ,{"type":"compaction","encrypted_content":"B"}], "x":1.0 }';
    const seen: CompactedItem[] = [];
    const expanded = form.expand(text, (item) => {
      seen.push(item);
      return item.content === 'A' ? { pinned: [{ role: 'system', content: 'P' }], content: 'S' } : null;
    });
    expect(expanded).toBe(
      text.replace(
        '{"encrypted_content":"A", "type":"compaction"}',
        () => `{"role":"system","content":"P"},${summary}`,
      ),
    );
    expect(seen).toEqual([
      { content: 'A', field: 'input[1].encrypted_content', isFirst: true },
      { content: 'B', field: 'input[2].encrypted_content', isFirst: false },
    ]);
  });

  it('leaves out what is pinned and is no item: the field of instructions comes with each request', () => {
    const text = '{"input":[{"type":"compaction","encrypted_content":"A"}]}';
    const stands = () => ({ pinned: [{ instructions: 'Be kind.' }], content: 'S' });
    expect(form.expand(text, stands)).toBe(`{"input":[${summary}]}`);
  });

  it.each([
    '{"input":"A"}',
    '{"model":"m"}',
    '[1]',
    'null',
    '{"input":[{"type":"compaction"},{"type":"compaction","encrypted_content":7},null,{"type":"reasoning","encrypted_content":"A"}]}',
  ])('leaves %s as it is', (text) => {
    expect(form.expand(text, () => ({ pinned: [], content: 'S' }))).toBe(text);
  });
});
