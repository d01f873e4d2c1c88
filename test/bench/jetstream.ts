/** Yardstick of the fabric's benchmark: a NATS server with JetStream that stores each message on disk before it responds. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  AckPolicy,
  type ConsumerMessages,
  connect,
  type JetStreamClient,
  type JsMsg,
  type NatsConnection,
  StorageType,
} from "nats";
import { freePort } from "../harness/free-port.ts";

const SERVER = "/usr/sbin/nats-server";
const STARTED_MS = 10_000;

/** Durability of a message when the server responds. */
const PROMISES = {
  always: "the server syncs every message before it answers",
  flag: "the server's files have the attribute S: what it writes is on disk when the write returns, and it answers after that",
  less: "neither the server nor the file system of its files can keep every message on disk; it answers before one is",
};

export class Jetstream {
  /** Description of its durability. */
  readonly promise: string;
  readonly #home: string;
  readonly #server: ChildProcess;
  readonly #connection: NatsConnection;
  readonly #stream: JetStreamClient;
  #woken: (() => void) | null = null;
  #messages: ConsumerMessages | null = null;

  private constructor(home: string, server: ChildProcess, connection: NatsConnection, promise: string) {
    this.promise = promise;
    this.#home = home;
    this.#server = server;
    this.#connection = connection;
    this.#stream = connection.jetstream();
  }

  /** Null when there is none on this host. */
  static async start(): Promise<Jetstream | null> {
    if (!existsSync(SERVER)) return null;
    // On the disk that the daemons of the benchmarks are on.
    const home = mkdtempSync("/tmp/roomd-nats-");
    const port = await freePort();
    const store = join(home, "js");
    const run = (promise: string) => {
      const config = join(home, "nats.conf");
      const sync = promise === PROMISES.always ? ", sync_interval: always" : "";
      writeFileSync(config, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${store}"${sync} }\n`);
      return spawn(SERVER, ["-c", config], { stdio: "ignore" });
    };
    let promise = PROMISES.always;
    let server = run(promise);
    const connection = await reach(port, server).catch(async () => {
      // Before 2.10 the server syncs at its own times only.
      promise = writesThrough(store) ? PROMISES.flag : PROMISES.less;
      server = run(promise);
      return await reach(port, server);
    });
    const jetstream = new Jetstream(home, server, connection, promise);
    await jetstream.#prepare();
    if (promise === PROMISES.flag) requireWritesThrough(store);
    return jetstream;
  }

  async #prepare(): Promise<void> {
    const manager = await this.#connection.jetstreamManager();
    await manager.streams.add({ name: "bench", subjects: ["to.*", "wake"], storage: StorageType.File });
    await manager.consumers.add("bench", {
      durable_name: "wake",
      ack_policy: AckPolicy.Explicit,
      filter_subject: "wake",
    });
    const messages = await (await this.#stream.consumers.get("bench", "wake")).consume();
    this.#messages = messages;
    const read = async () => {
      for await (const message of messages) {
        (message as JsMsg).ack();
        this.#woken?.();
      }
    };
    void read();
  }

  /** Resolves once it is kept. */
  async publish(subject: string, payload: object): Promise<void> {
    await this.#stream.publish(subject, JSON.stringify(payload));
  }

  /** Resolves once a waiting consumer has it. */
  async roundTrip(subject: string, payload: object): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#woken = resolve;
    await Promise.all([this.publish(subject, payload), promise]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A consumer that is not closed polls forever.
    await this.#messages?.close();
    await this.#connection.close();
    const exited = new Promise((resolve) => this.#server.once("exit", resolve));
    this.#server.kill();
    await exited;
    rmSync(this.#home, { recursive: true, force: true });
  }
}

/** Makes new files in this directory behave as if opened with O_SYNC; false if the file system lacks the attribute. */
function writesThrough(directory: string): boolean {
  mkdirSync(directory, { recursive: true });
  return spawnSync("chattr", ["+S", directory]).status === 0;
}

/** Throws if a message file below was created without the attribute. */
function requireWritesThrough(directory: string): void {
  const { stdout } = spawnSync("lsattr", ["-R", directory], { encoding: "utf8" });
  const messages = stdout.split("\n").filter((line) => line.endsWith(".blk"));
  const without = messages.filter((line) => !line.split(" ")[0]?.includes("S"));
  if (messages.length === 0 || without.length > 0) throw new Error(`not written through: ${without} in ${stdout}`);
}

async function reach(port: number, server: ChildProcess): Promise<NatsConnection> {
  const end = performance.now() + STARTED_MS;
  for (;;) {
    try {
      return await connect({ servers: `127.0.0.1:${port}`, reconnect: false });
    } catch (error) {
      if (server.exitCode !== null || performance.now() > end) throw error;
      await Bun.sleep(50);
    }
  }
}
