/**
 * Environment variables that make a Bun binary run other code than its own. Measured with Bun 1.4.5, compiled:
 *
 *   BUN_OPTIONS   its --preload runs before us          refused: its code has already run
 *   BUN_INSPECT   opens a debugger's port to anyone     refused
 *   BUN_BE_BUN=1  makes the binary the `bun` command    never gets here compiled; refused if roomd runs from source
 *   NODE_OPTIONS  does nothing to Bun                   removed, so that no child process obeys it
 *
 * Also the settings that the runtime reads only from the environment.
 */
import { CliError, EXIT } from "../kit/cli-error.ts";

const REFUSED = ["BUN_OPTIONS", "BUN_INSPECT", "BUN_BE_BUN"] as const;
const REMOVED = ["NODE_OPTIONS", "BUN_INSPECT_PRELOAD", "BUN_INSPECT_CONNECT_TO", "BUN_INSPECT_NOTIFY"] as const;

/** Checks the environment of the daemon, which holds every organization's data. Throws a usage error. */
export function requireCleanEnvironment(env: Record<string, string | undefined> = process.env): void {
  const found = REFUSED.filter((name) => env[name]);
  if (found.length > 0) {
    const unset = found.map((name) => `-u ${name}`).join(" ");
    throw new CliError(
      `${found.join(" and ")} would let other code run in the daemon. Start it with \`env ${unset} roomd serve\`.`,
      EXIT.usage,
    );
  }
  for (const name of REMOVED) delete env[name];
}

/**
 * The runtime checks every second whether there is garbage to collect while anything changes, which with thousands of waiters is most of an
 * idle daemon's CPU time. A growing heap is collected anyway.
 */
const RUNTIME = { BUN_GC_TIMER_INTERVAL: "60000" };

/**
 * Executes the same program again in this process, with the settings that the runtime reads at startup. Does nothing when run from source.
 */
export function becomeConfigured(): void {
  const { env, execPath, argv } = process;
  const compiled = Bun.main.startsWith("/$bunfs/");
  if (!compiled || Object.keys(RUNTIME).some((name) => env[name] !== undefined)) return;
  process.execve?.(execPath, [execPath, ...argv.slice(2)], { ...env, ...RUNTIME });
}
