/** Replaces ../../host/background.ts in the npm client, based on Node's APIs. */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Programs that open an address in a browser, on systems other than Linux. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

const IS_WINDOWS = process.platform === "win32";

/** Whether a program of this name is installed. */
export function hasProgram(name: string): boolean {
  return find(name) !== null;
}

/** Starts a program for the user and leaves it running; false if there is no such program. */
export function startForUser(argv: readonly string[]): boolean {
  const [name = "", ...args] = argv;
  if (name === "xdg-open") return start([...(OPENERS[process.platform] ?? [name]), ...args]);
  const program = find(name);
  if (program === null) return false;
  if (!IS_WINDOWS) return start([program, ...args]);
  // Editors are batch files on Windows and need the shell, which would interpret other characters.
  return args.every((word) => /^[\w./:+@-]+$/.test(word)) && start([name, ...args], true);
}

function start([program = "", ...args]: readonly string[], shell = false): boolean {
  const child = spawn(program, args, { detached: true, stdio: "ignore", shell });
  child.on("error", () => {});
  child.unref();
  return child.pid !== undefined;
}

function find(name: string): string | null {
  const ends = IS_WINDOWS ? [".exe", ".cmd", ".bat"] : [""];
  const places = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  const files = places.flatMap((place) => ends.map((end) => join(place, name + end)));
  return files.find(isProgram) ?? null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
