import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** How an agent is told where its model is and what to do, as its users do it. */
export interface Agent {
  readonly package: string;
  readonly version: string;
  /** A script of the package's own that has to run once. */
  readonly prepare: string | null;
  /** The program, from the package's folder; a script where it ends in `js`. */
  readonly program: string;
  /** The name of its tool that runs a command, and the arguments that make it run one. */
  readonly shell: { readonly name: string; argumentsFor(command: string): Readonly<Record<string, unknown>> };
  readonly windowTokens: number;
  /** Writes its settings into its home folder, which is empty. `url` has no path. */
  configure(home: string, url: string): Promise<void>;
  environment(home: string, url: string): Readonly<Record<string, string>>;
  args(task: string): readonly string[];
}

/** `provider`: one of the user's own, or the one that is built in, which tries a websocket first. */
function codex(provider: 'own' | 'built-in'): Agent {
  return {
    package: '@openai/codex',
    version: '0.171.0',
    prepare: null,
    program: 'bin/codex.js',
    shell: { name: 'exec_command', argumentsFor: (cmd) => ({ cmd, max_output_tokens: 8_000 }) },
    windowTokens: 48_000,
    async configure(home, url) {
      const own = [
        '[model_providers.spillway]',
        'name = "Spillway"',
        `base_url = "${url}/v1"`,
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
      ];
      const lines = [
        'model = "gpt-5.1"',
        provider === 'own' ? 'model_provider = "spillway"' : `openai_base_url = "${url}/v1"`,
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        'check_for_update_on_startup = false',
        '[analytics]',
        'enabled = false',
        ...(provider === 'own' ? own : []),
      ];
      await mkdir(join(home, '.codex'));
      await writeFile(join(home, '.codex', 'config.toml'), lines.join('\n'));
      await writeFile(join(home, '.codex', 'auth.json'), JSON.stringify({ OPENAI_API_KEY: 'sk-test' }));
    },
    environment: (home) => ({ CODEX_HOME: join(home, '.codex'), OPENAI_API_KEY: 'sk-test' }),
    args: (task) => ['exec', '--skip-git-repo-check', task],
  };
}

const claudeCode: Agent = {
  package: '@anthropic-ai/claude-code',
  version: '2.1.332',
  prepare: 'install.cjs',
  program: 'bin/claude.exe',
  shell: { name: 'Bash', argumentsFor: (command) => ({ command, description: 'Reads one part' }) },
  windowTokens: 64_000,
  configure: () => Promise.resolve(),
  environment: (home, url) => ({
    CLAUDE_CONFIG_DIR: join(home, '.claude'),
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: 'sk-ant-test',
    // Its own default is more than the whole of a small window.
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: '4096',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    IS_SANDBOX: '1',
  }),
  args: (task) => ['--dangerously-skip-permissions', '--model', 'claude-sonnet-4-5', '-p', task],
};

/** `npm` is the part of the AI SDK that it speaks through, and so the wire format. */
function openCode(npm: string): Agent {
  return {
    package: 'opencode-ai',
    version: '1.18.33',
    prepare: 'postinstall.mjs',
    program: 'bin/opencode.exe',
    shell: { name: 'bash', argumentsFor: (command) => ({ command, description: 'Reads one part' }) },
    windowTokens: 48_000,
    async configure(home, url) {
      await mkdir(join(home, '.config', 'opencode'), { recursive: true });
      const settings = {
        autoupdate: false,
        share: 'disabled',
        permission: 'allow',
        model: 'spillway/a-model',
        small_model: 'spillway/a-model',
        provider: {
          spillway: {
            npm,
            name: 'Spillway',
            options: { baseURL: `${url}/v1`, apiKey: 'sk-test' },
            models: { 'a-model': { name: 'a-model', tool_call: true, limit: { context: 400_000, output: 4_096 } } },
          },
        },
      };
      await writeFile(join(home, '.config', 'opencode', 'opencode.json'), JSON.stringify(settings));
    },
    environment: (home) => ({
      XDG_CONFIG_HOME: join(home, '.config'),
      XDG_DATA_HOME: join(home, '.local', 'share'),
      XDG_CACHE_HOME: join(home, '.cache'),
      XDG_STATE_HOME: join(home, '.local', 'state'),
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    }),
    args: (task) => ['run', task],
  };
}

function pi(api: 'openai-completions' | 'openai-responses' | 'anthropic-messages'): Agent {
  return {
    package: '@mariozechner/pi-coding-agent',
    version: '0.73.1',
    prepare: null,
    program: 'dist/cli.js',
    shell: { name: 'bash', argumentsFor: (command) => ({ command }) },
    windowTokens: 48_000,
    async configure(home, url) {
      await mkdir(join(home, '.pi', 'agent'), { recursive: true });
      const model = {
        id: 'a-model',
        name: 'a-model',
        reasoning: false,
        input: ['text'],
        contextWindow: 400_000,
        maxTokens: 4_096,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      };
      const baseUrl = api === 'anthropic-messages' ? url : `${url}/v1`;
      const settings = { providers: { spillway: { baseUrl, apiKey: 'sk-test', api, models: [model] } } };
      await writeFile(join(home, '.pi', 'agent', 'models.json'), JSON.stringify(settings));
    },
    environment: (home) => ({ PI_OFFLINE: '1', PI_TELEMETRY: '0', PI_CODING_AGENT_DIR: join(home, '.pi', 'agent') }),
    args: (task) => ['--provider', 'spillway', '--model', 'a-model', '-p', task],
  };
}

export const AGENTS: Readonly<Record<string, Agent>> = {
  'Codex with a provider of its user': codex('own'),
  'Codex with its built-in provider': codex('built-in'),
  'Claude Code': claudeCode,
  'opencode on chat completions': openCode('@ai-sdk/openai-compatible'),
  'opencode on responses': openCode('@ai-sdk/openai'),
  'pi on chat completions': pi('openai-completions'),
  'pi on responses': pi('openai-responses'),
  'pi on messages': pi('anthropic-messages'),
};
