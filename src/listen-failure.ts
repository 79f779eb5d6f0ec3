import { SpillwayError } from './core/errors.js';

export interface ListenPlace {
  readonly host: string;
  readonly port: number;
  /** How the user names both: variables or flags. */
  readonly hostSetting: string;
  readonly portSetting: string;
}

/** Why a server cannot listen, with the setting to change: the port where it is taken or not allowed, else the host. */
export function listenFailure(error: unknown, { host, port, hostSetting, portSetting }: ListenPlace): SpillwayError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  const complain = (setting: string, reason: string): SpillwayError =>
    new SpillwayError('invalid_setting', `${setting}: ${reason}`, setting, error);
  if (code === 'EADDRINUSE') return complain(portSetting, `${host}:${port} is in use, perhaps by another Spillway`);
  if (code === 'EACCES') return complain(portSetting, `this user may not listen on port ${port} (EACCES)`);
  return complain(hostSetting, `${host} is no address of this machine to listen on (${code})`);
}
