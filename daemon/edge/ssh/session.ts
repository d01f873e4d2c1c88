/**
 * One session channel: the client's requests before the start, then the command or file transfer, and its end.
 *
 *     environment, screen ──▶ shell, command or sftp ──▶ bytes both ways, signals, sizes ──▶ exit status or signal
 */
import { constants } from "node:os";
import type { ServerChannel, Session as SessionRequests } from "ssh2";
import { MAX_SCREEN_ROWS_OR_COLS } from "../../../shared/api/ssh.ts";
import { ownerOf } from "../../core/loop/index.ts";
import type { LiveCommand } from "../../host/guest-link/command.ts";
import { ChannelWriter } from "./channel-writer.ts";
import { takeVariable } from "./environment.ts";
import type { OpenConnection } from "./open-connection.ts";
import { drain, feed } from "./pump.ts";
import { type SessionKind, SessionOver } from "./session-opening.ts";

/** Exit code of ssh itself if the failure is not the command's. */
const FAILED = 255;
const NO_AGENT =
  "agent forwarding (-A) is refused: root of a sandbox could use every key of your agent. Put a key with few rights into the sandbox.";
const NO_X11 =
  "X11 forwarding (-X) is refused: programs in a sandbox could read your screen and keys. Use the sandbox's own desktop.";
const USUAL = { rows: 24, cols: 80 } as const;

export function serveSession(requests: SessionRequests, connection: OpenConnection): void {
  const env: Record<string, string> = {};
  let screen: { term: string; rows: number; cols: number } | null = null;
  let command: LiveCommand | null = null;

  const begin = async (channel: ServerChannel, kind: SessionKind, fields: Record<string, unknown>) => {
    const writer = new ChannelWriter(channel, connection.line, ownerOf(connection.orgId));
    let isClosed = false;
    connection.watch(channel, () => {
      isClosed = true;
      writer.close();
      command?.hangUp();
    });
    if (isClosed) return;
    const refused = await connection.opening.begin(kind, fields, (taken) => {
      command = taken;
    });
    // A started command that could not be recorded is refused.
    if (isClosed || refused !== null) command?.hangUp();
    if (isClosed) return;
    // Notes precede the command's own output, on a stream without data.
    for (const note of connection.notes) {
      connection.notes.delete(note);
      await writer.err(Buffer.from(`roomd: ${note}\r\n`));
    }
    if (command && refused === null) await follow(channel, command, writer, connection);
    else {
      await writer.err(Buffer.from(`roomd: ${refused ?? "nothing was started"}\n`));
      channel.exit(FAILED);
      channel.end();
    }
  };
  const start = (channel: ServerChannel | undefined, kind: SessionKind, fields: Record<string, unknown>) => {
    // A session has one command; ssh2 gives no channel for a second one.
    if (channel) begin(channel, kind, fields).catch((error: unknown) => connection.trouble(error));
  };

  requests.on("env", (accept, reject, { key, val }) => {
    if (takeVariable(env, key, val)) accept?.();
    else reject?.();
  });
  requests.on("pty", (accept, _, { term, rows, cols }) => {
    screen = { term: termOf(term), ...sizeOf(rows, cols) };
    accept?.();
  });
  requests.on("auth-agent", (_, reject) => {
    connection.notes.add(NO_AGENT);
    reject?.();
  });
  requests.on("x11", (_, reject) => {
    connection.notes.add(NO_X11);
    reject?.();
  });
  requests.on("window-change", (accept, _, { rows, cols }) => {
    const size = sizeOf(rows, cols);
    if (screen) Object.assign(screen, size);
    command?.resize(size.rows, size.cols);
    accept?.();
  });
  requests.on("signal", (accept, reject, { name }) => {
    const signal = `SIG${name}`;
    if (!command || !Object.hasOwn(constants.signals, signal)) return reject?.();
    command.signal(signal);
    accept?.();
  });
  requests.on("shell", (accept) => start(accept(), "shell", { env, screen }));
  requests.on("exec", (accept, _, info) => start(accept(), "exec", { command: info.command, env, screen }));
  requests.on("subsystem", (accept, reject, { name }) => {
    if (name === "sftp") start(accept(), "sftp", {});
    else reject?.();
  });
}

async function follow(channel: ServerChannel, command: LiveCommand, writer: ChannelWriter, connection: OpenConnection) {
  feed(channel, command, connection.countIn);
  try {
    await Promise.all([
      drain(command.stdout, (bytes) => writer.out(bytes), connection.countOut),
      command.stderr && drain(command.stderr, (bytes) => writer.err(bytes), connection.countOut),
    ]);
    const { exit_code, signal } = await command.ended;
    if (signal !== null) channel.exit(signal.replace(/^SIG/, ""), false, "");
    else channel.exit(exit_code ?? FAILED);
  } catch (error) {
    const isTold = error instanceof SessionOver;
    if (!isTold) connection.lost(error);
    const why = isTold ? error.message : connection.opening.whyLost();
    await writer.err(Buffer.from(`roomd: ${why}\n`));
    channel.exit(FAILED);
  }
  channel.end();
}

/** A client without a terminal sends 0. */
function sizeOf(rows: number, cols: number): { rows: number; cols: number } {
  const within = (size: number, usual: number) => (size > 0 ? Math.min(size, MAX_SCREEN_ROWS_OR_COLS) : usual);
  return { rows: within(rows, USUAL.rows), cols: within(cols, USUAL.cols) };
}

function termOf(term: string): string {
  return /^[A-Za-z0-9][\w.+-]{0,63}$/.test(term) ? term : "xterm";
}
