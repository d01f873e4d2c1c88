/** An image registry (docker-registry) on the loopback, over TLS, with one authorized user. Closing it leaves nothing behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
import { until } from "../guests.ts";
import { type Issued, issue } from "../issued-certificate.ts";

const USER = "puller";

/** Writes the configuration of docker-registry, and returns its path. Its data is in `directory`. */
export function registryConfig(directory: string, addr: string, { cert, key }: Issued, more: object = {}): string {
  mkdirSync(directory, { recursive: true });
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const tls = { certificate: write("cert.pem", cert), key: write("key.pem", key) };
  const storage = { filesystem: { rootdirectory: join(directory, "blobs") } };
  const config = { version: "0.1", log: { level: "warn" }, storage, http: { addr, tls }, ...more };
  // JSON is YAML too.
  return write("config.yml", JSON.stringify(config));
}

export class ImageRegistry {
  readonly host: string;
  readonly password: string;
  readonly #process: ChildProcess;
  readonly #trust: string;
  #said = "";

  private constructor(host: string, password: string, config: string, trust: string) {
    this.host = host;
    this.password = password;
    this.#trust = trust;
    this.#process = spawn("docker-registry", ["serve", config], { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#said += chunk;
      });
    }
  }

  /** Its data is in `directory`. */
  static async start(directory: string, given?: number): Promise<ImageRegistry> {
    mkdirSync(directory, { recursive: true });
    const port = given ?? (await freePort());
    const host = `localhost:${port}`;
    const issued = await issue(["localhost"]);
    const { authority } = issued;
    // Container tools look up trusted authorities here.
    const trust = join("/etc/containers/certs.d", host);
    mkdirSync(trust, { recursive: true });
    writeFileSync(join(trust, "ca.crt"), authority);
    const password = crypto.randomUUID();
    const users = join(directory, "users");
    writeFileSync(users, `${USER}:${await Bun.password.hash(password, { algorithm: "bcrypt", cost: 4 })}\n`);
    const auth = { htpasswd: { realm: "images", path: users } };
    const config = registryConfig(directory, `127.0.0.1:${port}`, issued, { auth });
    const registry = new ImageRegistry(host, password, config, trust);
    const answers = async () =>
      await fetch(`https://${host}/v2/`, { tls: { ca: authority } }).then(
        ({ status }) => status === 401,
        () => false,
      );
    await until("the registry answers", answers, 20_000).catch((error: unknown) => {
      registry.close();
      throw new Error(`${error}: ${registry.#said}`);
    });
    return registry;
  }

  /** As docker's config.json has it. */
  auth(password = this.password): string {
    const auth = Buffer.from(`${USER}:${password}`).toString("base64");
    return JSON.stringify({ auths: { [this.host]: { auth } } });
  }

  /** Puts an image there. */
  async push(from: string, name: string): Promise<void> {
    const to = ["--dest-creds", `${USER}:${this.password}`, from, `docker://${this.host}/${name}`];
    const push = spawn("skopeo", ["--insecure-policy", "copy", ...to], { stdio: ["ignore", "ignore", "pipe"] });
    let output = "";
    push.stderr.on("data", (chunk: Buffer) => {
      output += chunk;
    });
    const code = await new Promise((done) => push.once("close", done));
    if (code !== 0) throw new Error(`no image in the registry: ${output}`);
  }

  close(): void {
    this.#process.kill("SIGKILL");
    rmSync(this.#trust, { recursive: true, force: true });
  }
}
