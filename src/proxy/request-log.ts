/** Facts of one request for its log line. Never message text, never a credential. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Gathers what is known of a request and writes one line at its end. */
export interface RequestLog {
  add(fields: LogFields): void;
  /** A defect of our own: the error's stack, without text of the request. */
  fail(error: unknown): void;
  /** Writes the line; later calls do nothing. */
  write(): void;
}

/** Longest text in a line: a model's name or a path is the client's to choose. */
const MOST_CHARS = 200;

/** `writeLine` gets the gathered fields and the defect, if there was one. */
export function createRequestLog(writeLine: (fields: LogFields, error: unknown) => void, first: LogFields): RequestLog {
  let fields: LogFields = first;
  let defect: unknown;
  let written = false;
  return {
    add(more) {
      fields = { ...fields, ...more };
    },
    fail(error) {
      defect = error;
    },
    write() {
      if (written) return;
      written = true;
      writeLine(shortened(fields), defect);
    },
  };
}

function shortened(fields: LogFields): LogFields {
  const pairs = Object.entries(fields).map(([name, value]): [string, LogFields[string]] => {
    const isLong = typeof value === 'string' && value.length > MOST_CHARS;
    return [name, isLong ? `${value.slice(0, MOST_CHARS)}…` : value];
  });
  return Object.fromEntries(pairs);
}
