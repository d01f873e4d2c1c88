/** A real screen on this host, as a guest with a desktop has one: an Xvnc, and programs that use it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";

const ACCESS = ["-rfbunixmode", "0600", "-rfbport", "-1", "-SecurityTypes", "None", "-nolisten", "tcp"];

/** Those of these programs, and of Xvnc, that this host does not have. */
export function missingOf(...programs: string[]): string[] {
  return ["Xvnc", ...programs].filter((program) => spawnSync("which", [program]).status !== 0);
}

export class RealScreen {
  readonly #processes: ChildProcess[] = [];
  readonly #directory = mkdtempSync("/tmp/roomd-screen-");
  /** The socket on which it serves RFB. */
  readonly socket = join(this.#directory, "rfb");
  display = "";

  static async start(width: number, height: number): Promise<RealScreen> {
    const screen = new RealScreen();
    const geometry = ["-geometry", `${width}x${height}`, "-depth", "24", "-AcceptSetDesktopSize", "-AlwaysShared"];
    const server = screen.run("Xvnc", ["-displayfd", "3", "-rfbunixpath", screen.socket, ...ACCESS, ...geometry]);
    screen.display = await new Promise<string>((resolve, reject) => {
      (server.stdio[3] as Readable).once("data", (chunk) => resolve(`:${String(chunk).trim()}`));
      server.once("exit", () => reject(new Error("Xvnc ended")));
    });
    return screen;
  }

  /** Runs on the screen until the program exits or the screen is stopped. */
  run(program: string, args: readonly string[]): ChildProcess {
    const child = spawn(program, args, {
      env: { PATH: process.env.PATH, HOME: this.#directory, DISPLAY: this.display, LC_ALL: "C.UTF-8" },
      stdio: ["pipe", "pipe", "ignore", "pipe"],
    });
    this.#processes.push(child);
    return child;
  }

  /** Its output, until it exits. */
  async output(program: string, ...args: string[]): Promise<string> {
    let printed = "";
    for await (const chunk of this.run(program, args).stdout ?? []) printed += chunk;
    return printed;
  }

  /** A program copies this to the clipboard. It keeps running until another one copies. */
  copy(text: string): void {
    this.run("xclip", ["-quiet", "-selection", "clipboard"]).stdin?.end(text);
  }

  stop(): void {
    for (const child of this.#processes.reverse()) child.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
