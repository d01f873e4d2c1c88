/** Ends a sandbox's command together with the CLI process that follows it: on a signal, or when its output has no reader. */
import { constants } from "node:os";
import { EXIT } from "../../kit/cli-error.ts";
import { onBrokenOutput } from "../../kit/output.ts";

const FATAL = ["SIGTERM", "SIGHUP"] as const;
/** Time limit for ending the command. The service ends it within 5 s, if necessary by SIGKILL. */
const END_MS = 10_000;

export interface EndWithUs {
  /** Whether the end has started: results and errors of unfinished work mean nothing then. */
  readonly hasBegun: boolean;
  /** Resolves unless the end has started. Then it never does, so that this process exits with the status of its own signal. */
  unlessBegun(): Promise<void>;
  /** Ends the command, then exits this process with `status`; never resolves. */
  end(status: number): Promise<never>;
  [Symbol.dispose](): void;
}

/** Installs handlers: a signal that would end this process calls `end` first. */
export function endWithUs(end: () => Promise<unknown>): EndWithUs {
  let ending: Promise<never> | null = null;
  const endOnce = (status: number): Promise<never> => {
    ending ??= (async () => {
      const late = new Promise((resolve) => setTimeout(resolve, END_MS));
      await Promise.race([end().catch(() => {}), late]);
      process.exit(status);
    })();
    return ending;
  };
  const handlers = FATAL.map((signal) => {
    const handle = () => void endOnce(EXIT.signal + constants.signals[signal]);
    process.on(signal, handle);
    return [signal, handle] as const;
  });
  // A reader that closes the output early (`| head`) is not an error.
  const usual = onBrokenOutput(() => void endOnce(EXIT.ok));
  return {
    get hasBegun() {
      return ending !== null;
    },
    unlessBegun: () => (ending === null ? Promise.resolve() : ending),
    end: endOnce,
    [Symbol.dispose]() {
      for (const [signal, handle] of handlers) process.off(signal, handle);
      usual();
    },
  };
}
