/**
 * Lint rules. The second half makes the layers of the source tree errors: see `layers`. An override replaces a rule of
 * an earlier one instead of adding to it, so each folder gets one complete override.
 */

const general = {
  // Types are the truth: no hole in them, no promise lost, every member of a union seen to.
  'typescript/no-explicit-any': 'error',
  'typescript/no-non-null-assertion': 'error',
  'typescript/no-unsafe-argument': 'error',
  'typescript/no-unsafe-assignment': 'error',
  'typescript/no-unsafe-call': 'error',
  'typescript/no-unsafe-function-type': 'error',
  'typescript/no-unsafe-member-access': 'error',
  'typescript/no-unsafe-return': 'error',
  'typescript/no-misused-promises': 'error',
  'typescript/only-throw-error': 'error',
  // The reason of an AbortSignal is passed on as it is, and its type is `any`.
  'typescript/prefer-promise-reject-errors': ['error', { allowThrowingAny: true, allowThrowingUnknown: true }],
  'typescript/return-await': ['error', 'in-try-catch'],
  'typescript/switch-exhaustiveness-check': ['error', { requireDefaultForNonUnion: false }],
  'typescript/use-unknown-in-catch-callback-variable': 'error',
  'typescript/ban-ts-comment': 'error',
  'typescript/consistent-type-imports': 'error',
  'typescript/consistent-type-exports': 'error',
  'typescript/consistent-type-definitions': ['error', 'interface'],
  'typescript/array-type': 'error',
  'typescript/no-deprecated': 'error',
  'typescript/prefer-nullish-coalescing': ['error', { ignorePrimitives: { number: true, string: true } }],
  'typescript/prefer-optional-chain': 'error',
  'typescript/prefer-readonly': 'error',

  // `== null` is how absent and null are one.
  'eslint/eqeqeq': ['error', 'always', { null: 'ignore' }],
  'eslint/no-console': 'error',
  'eslint/no-else-return': 'error',
  'eslint/no-empty': 'error',
  'eslint/no-fallthrough': 'error',
  'eslint/no-param-reassign': 'error',
  'eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true }],
  'eslint/no-use-before-define': ['error', { functions: false, classes: false, variables: false }],
  'eslint/no-useless-return': 'error',
  'eslint/no-var': 'error',
  'eslint/no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx', 'hack'] }],
  'eslint/object-shorthand': 'error',
  'eslint/prefer-const': 'error',
  'eslint/prefer-object-has-own': 'error',
  'eslint/prefer-template': 'error',
  'eslint/radix': 'error',

  'import/first': 'error',
  'import/no-named-as-default-member': 'off',
  'import/no-cycle': 'error',
  'import/no-default-export': 'error',
  'import/no-duplicates': 'error',
  'import/no-mutable-exports': 'error',

  'unicorn/filename-case': ['error', { case: 'kebabCase' }],
  'unicorn/no-abusive-eslint-disable': 'error',
  'unicorn/no-process-exit': 'error',
  'unicorn/prefer-at': 'error',
  'unicorn/prefer-node-protocol': 'error',
  'unicorn/prefer-number-properties': ['error', { checkNaN: false }],
  'unicorn/prefer-string-slice': 'error',
  'unicorn/throw-new-error': 'error',

  // An exhaustive switch ends a function; the compiler sees a path without a value by itself.
  'typescript/consistent-return': 'off',
  'promise/always-return': 'off',
  // A stream is read in order, and new data is made by spreading old.
  'eslint/no-await-in-loop': 'off',
  'oxc/no-map-spread': 'off',
  // Ports are made of closures as often as of classes; a class that loses `this` fails its first test.
  'typescript/unbound-method': 'off',
  // Text hygiene is about control characters.
  'eslint/no-control-regex': 'off',
  // A closure beside its only use reads better than one far from it.
  'unicorn/consistent-function-scoping': 'off',
};

/** Tests build wrong input on purpose, and fail loudly by themselves where an assumption does not hold. */
const inTests = {
  'typescript/no-non-null-assertion': 'off',
  'typescript/no-unsafe-argument': 'off',
  'typescript/no-unsafe-assignment': 'off',
  'typescript/no-unsafe-call': 'off',
  'typescript/no-unsafe-member-access': 'off',
  'typescript/no-unsafe-return': 'off',
  'typescript/no-unsafe-type-assertion': 'off',
  // What is deprecated is still sent, and has to be carried.
  'typescript/no-deprecated': 'off',
  'vitest/no-conditional-tests': 'error',
  'vitest/no-disabled-tests': 'error',
  'vitest/no-focused-tests': 'error',
  'vitest/no-identical-title': 'error',
  // Helpers assert too, and an awaited event is an assertion.
  'vitest/expect-expect': 'off',
  'vitest/no-conditional-expect': 'off',
  'vitest/require-to-throw-message': 'off',
  'vitest/valid-expect': 'off',
};

/**
 * The folders of `src` and what each may import. Files named `node-…` and those of `onNode` run on Node alone, all others
 * in a Worker too; `core` asks for nothing but ECMAScript. Beside the folders stand the composition roots and the settings.
 */
const layers = [
  { folder: 'core', imports: [], isPure: true },
  { folder: 'sse', imports: ['core'] },
  { folder: 'tokens', imports: ['core'] },
  { folder: 'dialects', imports: ['core'] },
  { folder: 'ledger', imports: ['core'], onNode: ['sqlite*.ts', 'redis*.ts'] },
  { folder: 'upstream', imports: ['core'], onNode: ['decode-body.ts'] },
  { folder: 'proxy', imports: ['core', 'sse', 'tokens', 'dialects', 'upstream'] },
  { folder: 'http', imports: ['core', 'sse', 'tokens', 'dialects', 'upstream', 'proxy'] },
  { folder: 'config', imports: ['core', 'dialects', 'upstream', 'proxy', 'http'] },
  { folder: 'simulator', imports: ['core', 'sse', 'tokens'], onNode: ['*.ts'] },
  // A composition root in files of its own: it chooses drivers, and shares `compose.ts` and `config.ts` with the other roots.
  {
    folder: 'worker',
    imports: ['core', 'sse', 'tokens', 'dialects', 'ledger', 'upstream', 'proxy', 'http', 'config'],
    beside: ['compose', 'config'],
    isRoot: true,
  },
];

/** What is tied to a platform: another folder gets it from a composition root, through a port, as it does its store. */
const drivers = 'tokens/node-[^/]+|upstream/((node|fetch)-[^/]+|decode-body\\.js)';

const nodePackages = '^(node:|(undici|better-sqlite3|ioredis|pino|@hono/node-server)(/|$))';
const nodeFiles = '/(node-[^/]+|sqlite[^/]*|redis[^/]*|decode-body\\.js)$';
const noNode = { regex: `${nodePackages}|${nodeFiles}`, message: 'This file runs in a Worker too.' };

/** What a file may ask of its surroundings, by where it runs. */
const platforms = {
  language: {
    env: { es2023: true },
    noImports: [{ regex: '^[^.]', message: 'The core imports no package.' }],
    rules: {
      'no-restricted-globals': ['error', 'Date', 'globalThis'],
      'no-restricted-properties': ['error', { object: 'Math', property: 'random' }],
    },
  },
  web: {
    env: { es2023: true, 'shared-node-browser': true },
    noImports: [noNode],
    rules: { 'no-restricted-globals': ['error', { globals: ['process'], checkGlobalObject: true }] },
  },
  node: {
    env: { es2023: true, node: true },
    noImports: [
      { regex: '^(node:)?process$', message: 'Only config.ts and the composition roots read the environment.' },
    ],
    rules: {
      'no-restricted-globals': 'off',
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env' },
        { object: 'process', property: 'argv' },
      ],
    },
  },
};

const besideFolders = 'No folder imports what stands beside the folders.';

/** Folders below a layer's own, at most. */
const DEEPEST = 3;

function layerOverrides({ folder, imports, isPure = false, isRoot = false, onNode = [], beside = [] }) {
  const allowed = [folder, ...imports];
  const others = layers.map((layer) => layer.folder).filter((name) => !allowed.includes(name));

  function override(files, depth, { env, noImports, rules }) {
    const up = '\\.\\./'.repeat(depth + 1);
    const patterns = [
      { regex: `^${up}(${others.join('|')})/`, message: `src/${folder} may import: ${allowed.join(', ')}.` },
      beside.length === 0
        ? { regex: `^${up}([^/]+$|\\.\\./)`, message: besideFolders }
        : { group: [`${'../'.repeat(depth + 1)}*`, ...beside.map((name) => `!../${name}.js`)], message: besideFolders },
      ...(isRoot ? [] : [{ regex: `^${up}(${drivers})$`, message: 'Only a composition root imports a driver.' }]),
      ...noImports,
    ];
    return {
      files: files.map((file) => `src/${folder}/${file}`),
      env: { builtin: false, 'shared-node-browser': false, node: false, ...env },
      rules: { 'no-restricted-imports': ['error', { patterns }], 'no-undef': 'error', ...rules },
    };
  }

  const platform = isPure ? platforms.language : platforms.web;
  const depths = Array.from({ length: DEEPEST }, (_, depth) => depth);
  const everywhere = depths.map((depth) => override([`${'*/'.repeat(depth)}*.ts`], depth, platform));
  return isPure ? everywhere : [...everywhere, override(['node-*.ts', ...onNode], 0, platforms.node)];
}

const maxLines = { max: 350, skipBlankLines: true, skipComments: true };

export default {
  plugins: ['eslint', 'typescript', 'import', 'promise', 'node', 'unicorn', 'oxc', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  env: { builtin: true, node: true },
  options: { reportUnusedDisableDirectives: 'error' },
  rules: general,
  overrides: [
    { files: ['src/**/*.ts'], rules: { 'eslint/max-lines': ['error', maxLines] } },
    ...layers.flatMap(layerOverrides),
    { files: ['src/worker.ts'], rules: { 'no-restricted-imports': ['error', { patterns: [noNode] }] } },
    // What the Workers runtime has beyond the web's standards.
    {
      files: ['src/http/worker-*.ts'],
      globals: { FixedLengthStream: 'readonly', IdentityTransformStream: 'readonly' },
    },
    // Their loops keep an index inside its typed array.
    { files: ['src/tokens/*.ts'], rules: { 'typescript/no-non-null-assertion': 'off' } },
    { files: ['test/**/*.ts'], rules: inTests },
    {
      files: ['bench/**', 'scripts/**', 'src/cli.ts', 'src/simulator/**', 'src/worker.ts', 'src/worker/**'],
      rules: { 'eslint/no-console': 'off', 'unicorn/no-process-exit': 'off' },
    },
    {
      files: ['*.config.ts', '*.config.mjs', 'src/worker.ts', 'test/workerd/worker.ts'],
      rules: { 'import/no-default-export': 'off' },
    },
  ],
};
