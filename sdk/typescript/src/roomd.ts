/** Owns the beginning: a service, its rooms and its templates. */
import { Client, type ClientOptions } from "./client.ts";
import { inTime } from "./deadline.ts";
import { TemplateBuildError } from "./errors.ts";
import type { Room as RoomRecord, Template, TemplateBuild, TemplateCreateRequest } from "./generated/schemas.ts";
import { OwnRoom, Room } from "./room.ts";
import { createRoom } from "./sandbox-create.ts";
import type { CallOptions } from "./transport.ts";

/** The end of a build's output that its error shows. */
const LAST_LINES = 20;
const MOST_LAST_CHARACTERS = 16 * 1024;

export interface RoomOptions extends CallOptions {
  /** A name that nobody has if absent. */
  roomId?: string;
  labels?: Record<string, string>;
  /** The room is destroyed after this time. */
  ttlSeconds?: number;
  /** Whether its drive is kept for a day at the end of an `await using` block; it is deleted by default. */
  keep?: boolean;
}

export class Roomd {
  /** Every operation of the interface, by its name. */
  readonly client: Client;

  constructor(options: ClientOptions = {}) {
    this.client = new Client(options);
  }

  readonly rooms = {
    create: async ({ roomId, labels, ttlSeconds, keep = false, ...options }: RoomOptions = {}): Promise<OwnRoom> => {
      const wanted = {
        ...(labels === undefined ? {} : { labels }),
        ...(ttlSeconds === undefined ? {} : { ttl_seconds: ttlSeconds }),
      };
      const { room_id } = await createRoom(
        this.client,
        { ...wanted, ...(roomId === undefined ? {} : { room_id: roomId }) },
        options,
      );
      return new OwnRoom(this.client, room_id, { keep });
    },
    /** A room that there is; it is not ended by leaving a block. */
    open: (roomId: string): Room => new Room(this.client, roomId),
    list: (options: CallOptions = {}): AsyncGenerator<RoomRecord> => this.client.items("room_list", {}, options),
  };

  readonly templates = {
    get: (templateId: string, options: CallOptions = {}): Promise<Template> =>
      this.client.call("template_get", { template_id: templateId }, options),
    list: (options: CallOptions = {}): AsyncGenerator<Template> => this.client.items("template_list", {}, options),
    /** Builds one of an image, and waits until it is ready. Throws TemplateBuildError, with the last lines of its output. */
    build: (
      wanted: TemplateCreateRequest,
      { onOutput, ...options }: CallOptions & { onOutput?(line: string): void } = {},
    ): Promise<TemplateBuild> => {
      return inTime(options, "The template was not built in time: it goes on.", async (each) => {
        const build = await this.client.call("template_create", wanted, each);
        let output = "";
        const name = { template_id: build.template_id, build_id: build.build_id };
        for await (const event of this.client.events("template_build_stream", name, each)) {
          if (event.type !== "stdout") continue;
          const text = Buffer.from(event.data_b64, "base64").toString();
          output = (output + text).slice(-MOST_LAST_CHARACTERS);
          onOutput?.(text);
        }
        const built = await this.client.call("template_build_get", name, each);
        if (built.state === "ready") return built;
        throw new TemplateBuildError(built, output.trimEnd().split("\n").slice(-LAST_LINES));
      });
    },
    remove: async (templateId: string, options: CallOptions = {}): Promise<void> => {
      await this.client.call("template_remove", { template_id: templateId }, options);
    },
  };

  /** Ends all connections: what waits fails. */
  close(): void {
    this.client.close();
  }
}
