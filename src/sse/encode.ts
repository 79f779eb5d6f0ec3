/** The bytes of one event: `data` may hold any line ends, `event` must hold none. */
export function encodeSse(data: string, event: string | null = null): Uint8Array {
  const name = event === null ? '' : `event: ${event}\n`;
  const lines = data.split(/\r\n|\n|\r/).map((line) => `data: ${line}\n`);
  return new TextEncoder().encode(`${name}${lines.join('')}\n`);
}
