/** In place of ../../host/background.ts, with Node's own means. */
import { spawn } from "node:child_process";

/** The programs that open an address in a browser, where they are not Linux's own. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Starts a program for the user and leaves it running; false if there is no such program. */
export function startForUser(argv: readonly string[]): boolean {
  const [program = "", ...args] = [...(OPENERS[process.platform] ?? argv.slice(0, 1)), ...argv.slice(1)];
  const child = spawn(program, args, { detached: true, stdio: "ignore" });
  child.on("error", () => {});
  child.unref();
  return child.pid !== undefined;
}
