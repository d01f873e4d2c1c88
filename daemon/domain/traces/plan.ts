/** Configuration of traces. */
import { type Config, ConfigError } from "../../core/config/config.ts";
import { secretIn } from "../../core/config/secret-file.ts";

/** Path below a collector's address, as in OTLP. */
const PATH = "/v1/traces";
const HEADER = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\x20-\x7e]+)$/;
const TRACE_ID_PLACE = "{trace_id}";

export interface TracesPlan {
  /** Collector that receives spans; null: none. */
  collector: Collector | null;
  /** URL of a trace for people, with `{trace_id}` for its id; null: none. */
  trace_url: string | null;
}

export interface Collector {
  url: string;
  headers: Record<string, string>;
  /** The share of the calls without a trace that start one, from 0 to 1. */
  sample: number;
}

/** Throws ConfigError. */
export function planTraces(config: Config): TracesPlan {
  return { collector: planCollector(config), trace_url: planTraceUrl(config) };
}

function planCollector(config: Config): Collector | null {
  const text = config["otel.endpoint"];
  if (text === "") return null;
  const url = httpUrl("otel.endpoint", text);
  if (url.search !== "" || url.hash !== "") {
    throw refuse("otel.endpoint", text, `must be the collector's address, to which ${PATH} is added`);
  }
  const percent = config["otel.sample_percent"];
  if (percent > 100) throw refuse("otel.sample_percent", percent, "must be at most 100");
  if (!url.pathname.endsWith(PATH)) url.pathname = `${url.pathname.replace(/\/$/, "")}${PATH}`;
  return { url: url.href, headers: headersIn(config), sample: percent / 100 };
}

function headersIn(config: Config): Record<string, string> {
  const lines = (secretIn(config, "otel.headers_file") ?? "").split("\n").map((line) => line.trim());
  return Object.fromEntries(
    lines
      .filter((line) => line !== "")
      .map((line, index): [string, string] => {
        const [, name, value] = HEADER.exec(line) ?? [];
        // Header values are secret.
        if (name !== undefined && value !== undefined) return [name, value];
        throw refuse("otel.headers_file", config["otel.headers_file"], `line ${index + 1} is not NAME: VALUE`);
      }),
  );
}

function planTraceUrl(config: Config): string | null {
  const text = config["otel.trace_url"];
  if (text === "") return null;
  if (!text.includes(TRACE_ID_PLACE)) throw refuse("otel.trace_url", text, `must have ${TRACE_ID_PLACE} in it`);
  httpUrl("otel.trace_url", text.replaceAll(TRACE_ID_PLACE, "0"));
  return text;
}

function httpUrl(key: string, text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol !== "https:" && url?.protocol !== "http:")
    throw refuse(key, text, "must be an http:// or https:// URL");
  if (url.username !== "" || url.password !== "") {
    throw refuse(key, "…", "must contain no password: use otel.headers_file for secrets");
  }
  return url;
}

const refuse = (key: string, value: string | number, why: string) =>
  new ConfigError(`${key} = ${JSON.stringify(value)}: ${why}`);
