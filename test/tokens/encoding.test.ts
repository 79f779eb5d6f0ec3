import { describe, expect, it } from 'vitest';
import { encodingFor } from '../../src/tokens/encoding.js';

describe('encodingFor', () => {
  it.each([
    'gpt-4',
    'gpt-4-0613',
    'gpt-4-32k',
    'gpt-4-turbo-2024-04-09',
    'gpt-3.5-turbo',
    'gpt-35-turbo-16k',
    'openai/gpt-4',
    'ft:gpt-3.5-turbo-0613:acme::8abc',
    'text-embedding-3-small',
  ])('%s is counted with cl100k_base', (model) => {
    expect(encodingFor(model)).toBe('cl100k_base');
  });

  it.each([
    'gpt-4o',
    'gpt-4o-mini',
    'chatgpt-4o-latest',
    'gpt-4.1-nano',
    'gpt-4.5-preview',
    'gpt-5',
    'o3-mini',
    'ft:gpt-4o-2024-08-06:acme::8abc',
    'openai/gpt-4o:online',
    'claude-opus-4',
    'not-gpt-4',
    '',
  ])('%s is counted with o200k_base', (model) => {
    expect(encodingFor(model)).toBe('o200k_base');
  });
});
