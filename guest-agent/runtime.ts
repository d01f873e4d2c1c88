/**
 * Owns the programs that come with the agent, for roots that have none of them, or others. Each is run by the loader and with the libraries
 * that lie beside it, and leaves nothing of them in its environment: what it becomes is the root's own.
 */
import { existsSync } from "node:fs";
import { BUSYBOX, RUNTIME } from "../shared/agent-protocol/runtime.ts";

/** For modprobe's -d. */
export const MODULES = `${RUNTIME}/modules`;
/** What the kernel runs when it wants a module. */
export const LOAD_MODULE = `${RUNTIME}/bin/load-module`;
/** The room's command line, which is this program under another name: a second one would double the image's share of it. */
export const ROOM = `${RUNTIME}/bin/room`;
/** Where people and programs find it. */
export const ROOM_COMMAND_PLACE = "/usr/local/bin";

const LOADER = `${RUNTIME}/lib/ld.so`;
/** Parts of the agent are tried outside of guests too, with the programs that are there. */
const IS_THERE = existsSync(LOADER);

/** What runs a script: the root's own shell, or where it has none that of the runtime. */
export const SCRIPT_SHELL: readonly string[] = existsSync("/bin/sh") ? ["/bin/sh"] : [BUSYBOX, "sh"];

export type RuntimeProgram = "ip" | "modprobe" | "nft" | "setpriv" | "setsid" | "umount";

/** The command line of one of them. */
export function runtimeProgram(name: RuntimeProgram, ...argv: string[]): string[] {
  if (!IS_THERE) return [`/usr/bin/${name}`, ...argv];
  return [LOADER, "--library-path", `${RUNTIME}/lib`, "--argv0", name, `${RUNTIME}/bin/${name}`, ...argv];
}
