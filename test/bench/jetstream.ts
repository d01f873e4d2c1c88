/** Owns the yardstick of the fabric's benchmark: a NATS server with JetStream that keeps every message on disk before it answers. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

export class Jetstream {
  readonly #home: string;
  readonly #server: ChildProcess;
  readonly #connection: NatsConnection;
  readonly #stream: JetStreamClient;
  #woken: (() => void) | null = null;
  #messages: ConsumerMessages | null = null;

  private constructor(home: string, server: ChildProcess, connection: NatsConnection) {
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
    const config = join(home, "nats.conf");
    writeFileSync(
      config,
      `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${home}/js", sync_interval: always }\n`,
    );
    const older = join(home, "nats-older.conf");
    writeFileSync(older, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${home}/js" }\n`);
    let server = spawn(SERVER, ["-c", config], { stdio: "ignore" });
    const connection = await reach(port, server).catch(async () => {
      // Before 2.10 the server syncs at its own times only: then it promises less than it is held against.
      server = spawn(SERVER, ["-c", older], { stdio: "ignore" });
      console.error("this nats-server cannot sync every message; it answers before one is on disk");
      return await reach(port, server);
    });
    const jetstream = new Jetstream(home, server, connection);
    await jetstream.#prepare();
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
    // A consumer that is not closed asks on for ever.
    await this.#messages?.close();
    await this.#connection.close();
    const gone = new Promise((resolve) => this.#server.once("exit", resolve));
    this.#server.kill();
    await gone;
    rmSync(this.#home, { recursive: true, force: true });
  }
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
