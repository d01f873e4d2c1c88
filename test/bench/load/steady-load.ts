/**
 * Open-loop load generator: calls a daemon at a fixed rate, without waiting for earlier responses. A call's time counts from when it was
 * due, so that a daemon that delays its callers does not get less load for that. Argument: SteadyLoad as JSON. Prints a SteadyAnswers as
 * JSON when it is done.
 */
import { connect, type Socket } from "node:net";
import { agentOf, roomOf } from "../scale-guests.ts";

export interface SteadyLoad {
  url: string;
  key: string;
  per_second: number;
  seconds: number;
  /** How many guests there are, to which commands are sent; without one rooms are read instead. */
  guests: number;
  /** Number of guests with followed output during the load. */
  followed: number;
}

export type SteadyKind = "get" | "message" | "exec";

export interface SteadyAnswers {
  ms: Record<SteadyKind, number[]>;
  /** Answers that were no success. */
  refused: number;
  followed_bytes: number;
}

/** Mix of call kinds: agents read more often than they write. */
const MIX: readonly SteadyKind[] = [
  ...Array<SteadyKind>(12).fill("get"),
  ...Array<SteadyKind>(5).fill("message"),
  ...Array<SteadyKind>(3).fill("exec"),
];
const CONNECTIONS = 256;
const TICK_MS = 1;
/** Calls of the first seconds are not counted: connections are opened and code is compiled then. */
const WARM_UP_SECONDS = 2;
const SUCCESS = Buffer.from("HTTP/1.1 2");
const HEAD_END = "\r\n\r\n";

interface Call {
  kind: SteadyKind;
  dueAt: number;
}

const load = JSON.parse(process.argv[2] ?? "") as SteadyLoad;
const { hostname, port, host } = new URL(load.url);
const answers: SteadyAnswers = { ms: { get: [], message: [], exec: [] }, refused: 0, followed_bytes: 0 };
const waiting: Call[] = [];
const underWay = new Map<Socket, Call>();
const free: Socket[] = [];
const startedAt = performance.now() + 1000;

for (let lane = 0; lane < CONNECTIONS; lane++) openLane();

/** A connection for one call at a time. The daemon closes an idle connection: it is replaced then. */
function openLane(): void {
  const socket = connect({ host: hostname, port: Number(port) });
  let come = Buffer.alloc(0);
  socket.on("data", (bytes: Buffer) => {
    come = come.byteLength === 0 ? Buffer.from(bytes) : Buffer.concat([come, bytes]);
    const head = come.indexOf(HEAD_END);
    const length = head < 0 ? null : /\r\ncontent-length: (\d+)/i.exec(come.toString("latin1", 0, head));
    if (!length || come.byteLength < head + HEAD_END.length + Number(length[1])) return;
    note(socket, come.subarray(0, SUCCESS.byteLength).equals(SUCCESS));
    come = Buffer.alloc(0);
    release(socket);
  });
  socket.on("connect", () => release(socket));
  socket.on("error", () => {});
  socket.on("close", () => {
    const at = free.indexOf(socket);
    if (at >= 0) free.splice(at, 1);
    const call = underWay.get(socket);
    underWay.delete(socket);
    if (call) waiting.unshift(call);
    openLane();
  });
}

function release(socket: Socket): void {
  const next = waiting.shift();
  if (next) ask(socket, next);
  else free.push(socket);
}

for (let index = 0; index < load.followed; index++) {
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("data", (bytes: Buffer) => {
    answers.followed_bytes += bytes.byteLength;
  });
  const path = `/v1/rooms/${roomOf(index)}/sandboxes/${agentOf(index)}/executions/flow/stream`;
  socket.write(requestOf("GET", path, null));
}

let startedCount = 0;
const ticking = setInterval(() => {
  const due = ((performance.now() - startedAt) / 1000) * load.per_second;
  for (; startedCount < due && startedCount < load.per_second * load.seconds; startedCount++) {
    const call = {
      kind: MIX[startedCount % MIX.length] ?? "get",
      dueAt: startedAt + (startedCount / load.per_second) * 1000,
    };
    const socket = free.pop();
    if (socket) ask(socket, call);
    else waiting.push(call);
  }
  if (startedCount >= load.per_second * load.seconds && waiting.length === 0 && underWay.size === 0) finish();
}, TICK_MS);

function ask(socket: Socket, call: Call): void {
  underWay.set(socket, call);
  socket.write(bytesOf(call.kind));
}

function note(socket: Socket, succeeded: boolean): void {
  const call = underWay.get(socket);
  if (!call) return;
  underWay.delete(socket);
  if (!succeeded) answers.refused++;
  if (call.dueAt < startedAt + WARM_UP_SECONDS * 1000) return;
  answers.ms[call.kind].push(Number((performance.now() - call.dueAt).toFixed(2)));
}

let turn = 0;

/** Request for the next guest's room, in steps that soon visit all. */
function bytesOf(kind: SteadyKind): string {
  const index = load.guests === 0 ? 0 : (turn++ * 7) % load.guests;
  const room = `/v1/rooms/${roomOf(index)}`;
  if (kind === "message") {
    return requestOf("POST", `${room}/messages`, { source: "ann", topic: "none", payload: { n: 1 } });
  }
  if (kind === "get" || load.guests === 0) return requestOf("GET", room, null);
  return requestOf("POST", `${room}/sandboxes/${agentOf(index)}/exec`, { argv: ["true"] });
}

function requestOf(method: string, path: string, body: object | null): string {
  const text = body === null ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${load.key}`,
    ...(body === null ? [] : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return `${lines.join("\r\n")}${HEAD_END}${text}`;
}

function finish(): void {
  clearInterval(ticking);
  process.stdout.write(JSON.stringify(answers), () => process.exit(0));
}
