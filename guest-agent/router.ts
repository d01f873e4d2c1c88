/** Method table: the handler of each request of the host. */
import type { Stream } from "../shared/agent-protocol/link.ts";
import {
  type ClockResult,
  type DiskThawResult,
  type HostRequest,
  StreamErrorCode,
} from "../shared/agent-protocol/messages.ts";
import type { DiskFreeze } from "./disk-freeze.ts";
import type { Drive } from "./drive/drive.ts";
import type { Executions } from "./exec/executions.ts";
import { executionMethods } from "./exec/methods.ts";
import { InvalidRequest } from "./exec/request.ts";
import { runExec } from "./exec/run.ts";
import { fileMethods } from "./files/methods.ts";
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { connect } from "./ports/connect.ts";
import { connectToSocket } from "./ports/connect-socket.ts";
import { listening } from "./ports/listening.ts";
import { powerOff } from "./power.ts";
import { connectToScreen } from "./screen/connect.ts";
import { isDrive } from "./setup.ts";
import type { Terminals } from "./terminal/terminals.ts";

/** Ends its stream. The request is an object with this method; its other fields are not validated. */
type Handler = (stream: Stream, request: object) => Promise<void> | void;

export type Router = (stream: Stream, request: unknown) => void;

export function makeRouter(executions: Executions, terminals: Terminals, drive: Drive, disk: DiskFreeze): Router {
  const handlers: Record<HostRequest["method"], Handler> = {
    exec: (stream, request) => runExec(executions, stream, request),
    ...executionMethods(executions),
    ...fileMethods(drive),
    clock: (stream, request) => {
      const by = "adjust_ns" in request ? String(request.adjust_ns) : "0";
      if (!/^-?\d{1,18}$/.test(by)) return stream.fail(StreamErrorCode.invalid_request, "adjust_ns is not a number");
      if (BigInt(by) !== 0n) libc.setClock(libc.readClock() + BigInt(by));
      const result: ClockResult = { clock_ns: String(libc.readClock()) };
      stream.finish(result);
    },
    drive_lost: async (stream) => {
      await drive.lose();
      stream.finish({});
    },
    drive_mount: async (stream, request) => {
      if (!isDrive(request)) return stream.fail(StreamErrorCode.invalid_request, "tag and mount_point are needed");
      await drive.mount(request);
      stream.finish({});
    },
    disk_freeze: async (stream) => {
      await disk.begin();
      stream.finish({});
    },
    disk_thaw: async (stream) => {
      const result: DiskThawResult = { in_time: await disk.end() };
      stream.finish(result);
    },
    power_off: (stream) => powerOff(stream),
    connect: (stream, request) => connect(stream, request),
    socket_connect: (stream, request) => connectToSocket(stream, request),
    screen_connect: (stream) => connectToScreen(stream),
    listening: (stream, request) => listening(stream, request),
    terminal_open: (stream, request) => terminals.open(stream, request),
    terminal_attach: (stream, request) => terminals.attach(stream, request),
    terminal_watch: (stream, request) => terminals.watch(stream, request),
    terminal_list: (stream) => terminals.list(stream),
    terminal_close: (stream, request) => terminals.close(stream, request),
  };
  const isMethod = (method: string): method is keyof typeof handlers => Object.hasOwn(handlers, method);

  return (stream, request) => {
    if (typeof request !== "object" || request === null || !("method" in request)) {
      return stream.fail(StreamErrorCode.invalid_request, "a request must be an object with a method");
    }
    const method = String(request.method);
    if (!isMethod(method)) return stream.fail(StreamErrorCode.unknown_method, `no method ${method}`);
    Promise.try(handlers[method], stream, request).catch((error) => {
      if (error instanceof InvalidRequest) return stream.fail(StreamErrorCode.invalid_request, error.message);
      log(method, error);
      stream.fail(StreamErrorCode.internal, error instanceof Error ? error.message : String(error));
    });
  };
}
