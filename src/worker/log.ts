import type { Config } from '../config.js';

/** From the least to the most urgent; `silent` is above them all. */
const LEVELS: readonly Config['logLevel'][] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

export interface Log {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Log lines in JSON, with the members that they have on Node. */
export function createLog(least: Config['logLevel'], writeLine: (line: string) => void): Log {
  const write = (level: 'info' | 'error', fields: object, msg: string): void => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return;
    writeLine(JSON.stringify({ level, time: Date.now(), ...fields, msg }));
  };
  return {
    info: (fields, message) => write('info', fields, message),
    error: (fields, message) => write('error', fields, message),
  };
}
