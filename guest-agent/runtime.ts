/**
 * Programs that are shipped with the agent, for roots that lack them or have other versions. Each is run by the bundled loader with the
 * bundled libraries, and leaves no trace in the environment: the program that it executes uses the root's own libraries.
 */
import { existsSync } from "node:fs";
import { BUSYBOX, RUNTIME } from "../shared/agent-protocol/runtime.ts";

/** For modprobe's -d. */
export const MODULES = `${RUNTIME}/modules`;
/** The kernel's module loader program. */
export const LOAD_MODULE = `${RUNTIME}/bin/load-module`;
/** The room's command line, which is this program under another name: a second one would double the image's share of it. */
export const ROOM = `${RUNTIME}/bin/room`;
/** Directory in which people and programs find it. */
export const ROOM_COMMAND_PLACE = "/usr/local/bin";

const LOADER = `${RUNTIME}/lib/ld.so`;
/** Parts of the agent are tried outside of guests too, with the programs that are there. */
const IS_THERE = existsSync(LOADER);

/** Interpreter for scripts: the root's own shell, or that of the runtime if there is none. */
export const SCRIPT_SHELL: readonly string[] = existsSync("/bin/sh") ? ["/bin/sh"] : [BUSYBOX, "sh"];

export type RuntimeProgram = "ip" | "modprobe" | "nft" | "setpriv" | "setsid" | "umount";

/** The command line of one of them. */
export function runtimeProgram(name: RuntimeProgram, ...argv: string[]): string[] {
  if (!IS_THERE) return [`/usr/bin/${name}`, ...argv];
  return [LOADER, "--library-path", `${RUNTIME}/lib`, "--argv0", name, `${RUNTIME}/bin/${name}`, ...argv];
}
