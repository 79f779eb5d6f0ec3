/** Writes the settings table of the README from the settings themselves; with `--check` it only tells whether it is current. */
import { readFile, writeFile } from 'node:fs/promises';
import { settingsHelp } from '../src/config/settings.js';

const FILE = 'README.md';
const START = '<!-- settings: made by npm run docs -->';
const END = '<!-- /settings -->';

const readme = await readFile(FILE, 'utf8');
const start = readme.indexOf(START);
const end = readme.indexOf(END);
if (start < 0 || end < start) throw new Error(`${FILE} lacks the marks of the settings table`);
const current = `${readme.slice(0, start + START.length)}\n\n${table()}\n\n${readme.slice(end)}`;
if (!process.argv.includes('--check')) await writeFile(FILE, current);
else if (current !== readme) {
  process.stderr.write('The settings table of README.md is not current: npm run docs\n');
  process.exitCode = 1;
}

function table(): string {
  const rows = [...settingsHelp().values()].map((setting) => {
    const byDefault = setting.default === null ? '' : `\`${setting.default}\``;
    return `| \`${setting.name}\` | ${escape(setting.type)} | ${byDefault} | ${escape(setting.description)} |`;
  });
  return ['| Variable | Value | Default | Meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

function escape(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('*', '\\*');
}
