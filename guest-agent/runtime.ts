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
/** The room's command line: this program under another name, since a second copy would double its size in the image. */
export const ROOM = `${RUNTIME}/bin/room`;
/** Directory in which people and programs find it. */
export const ROOM_COMMAND_PLACE = "/usr/local/bin";

const LOADER = `${RUNTIME}/lib/ld.so`;
/** Parts of the agent are also tested outside of guests, with the programs installed there. */
const IS_THERE = existsSync(LOADER);

/** Interpreter for scripts: the root's own shell, or that of the runtime if none exists. */
export const SCRIPT_SHELL: readonly string[] = existsSync("/bin/sh") ? ["/bin/sh"] : [BUSYBOX, "sh"];

export type RuntimeProgram = "ip" | "modprobe" | "nft" | "setpriv" | "setsid" | "umount";

/** The command line of a runtime program. */
export function runtimeProgram(name: RuntimeProgram, ...argv: string[]): string[] {
  if (!IS_THERE) return [`/usr/bin/${name}`, ...argv];
  return [LOADER, "--library-path", `${RUNTIME}/lib`, "--argv0", name, `${RUNTIME}/bin/${name}`, ...argv];
}
