/**
 * The files of packaging/monitoring for Prometheus and Grafana, checked against /metrics: each expression parses, and names existing
 * metrics.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SOURCES } from "../../shared/api/audit.ts";
import { operations } from "../../shared/api/operations.ts";
import { parseMetrics, type Sample } from "../harness/clients/exposition.ts";
import { selectorsOf } from "../harness/clients/promql.ts";
import { TestDaemon } from "../harness/daemon.ts";
import { pageAt } from "../harness/documents.ts";
import type { Json } from "../harness/json.ts";
import { bare } from "./calls.ts";

const read = (name: string) => readFileSync(`packaging/monitoring/${name}`, "utf8");
const dashboard: Json = JSON.parse(read("dashboard.json"));
const alerts = (Bun.YAML.parse(read("alerts.yaml")) as Json).groups.flatMap((group: Json) => group.rules);
const scraping = Bun.YAML.parse(read("prometheus.example.yaml")) as Json;
const panels: Json[] = dashboard.panels;
const drawn = panels.filter(({ type }) => type !== "row");
const variables: Json[] = dashboard.templating.list;
const VARIABLES = variables.map(({ name }) => `$${name}`);

/** Metrics that Prometheus itself adds for each target. */
const OF_PROMETHEUS = { up: ["instance", "job"] };
const OF_TARGETS = ["instance", "job"];
/** Labels of which not every value is there at any time. */
const WORDS: Record<string, readonly string[]> = {
  operation: Object.keys(operations),
  door: SOURCES,
  status: ["1xx", "2xx", "3xx", "4xx", "5xx"],
};

const expressions: [string, string][] = [
  ...alerts.map(({ alert, expr }: Json) => [alert, expr]),
  ...drawn.flatMap(({ title, targets }) => targets.map(({ expr }: Json) => [title, expr])),
  ...dashboard.annotations.list.flatMap(({ name, expr }: Json) => (expr ? [[name, expr]] : [])),
];

let daemon: TestDaemon;
let samples: Sample[];
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
  await daemon.room("watched");
  expect((await daemon.api("GET", "/v1/rooms/none")).status).toBe(404);
  await bare(daemon, "GET", "/metrics");
  samples = parseMetrics((await bare(daemon, "GET", "/metrics")).body);
});
afterAll(() => daemon.stop());

/** The labels of a metric with their possible values; undefined if the metric does not exist. */
function labelsOf(metric: string): Map<string, Set<string>> | undefined {
  const own = samples.filter(({ name }) => name === metric);
  const ofPrometheus = OF_PROMETHEUS[metric as keyof typeof OF_PROMETHEUS];
  if (own.length === 0 && !ofPrometheus) return undefined;
  const labels = new Map<string, Set<string>>(OF_TARGETS.map((name) => [name, new Set()]));
  for (const [name, value] of own.flatMap((sample) => Object.entries(sample.labels))) {
    labels.set(name, (labels.get(name) ?? new Set(WORDS[name])).add(value));
  }
  return labels;
}

describe.each(expressions)("%s: %s", (_, expression) => {
  test("uses existing metrics, labels and values", () => {
    for (const { metric, matchers, groupedBy } of selectorsOf(expression)) {
      const labels = labelsOf(metric);
      expect(labels, metric).toBeDefined();
      for (const name of [...matchers.map(({ label }) => label), ...groupedBy]) {
        expect([...(labels?.keys() ?? [])], metric).toContain(name);
      }
      for (const { label, operator, value } of matchers) {
        if (VARIABLES.includes(value)) expect(operator).toBe("=~");
        else if (label === "job") expect([operator, value]).toEqual(["=", scraping.scrape_configs[0].job_name]);
        else for (const word of value.split("|")) expect([...(labels?.get(label) ?? [])], metric).toContain(word);
      }
    }
  });

  test("counts counters, and computes quantiles of buckets by `le`", () => {
    for (const { metric, functions, groupedBy } of selectorsOf(expression)) {
      const type = samples.find(({ name }) => name === metric)?.type ?? "gauge";
      const isCounted = functions.some((name) => ["rate", "increase"].includes(name));
      expect(isCounted, metric).toBe(type !== "gauge");
      const isBucket = metric.endsWith("_bucket");
      expect(functions.includes("histogram_quantile"), metric).toBe(isBucket);
      if (isBucket) expect(groupedBy).toContain("le");
    }
  });
});

test("expressions are parsed strictly", () => {
  expect(() => selectorsOf("sum(rate(roomd_requests_total[5m])")).toThrow();
  expect(() => selectorsOf("sum by state (roomd_sandboxes)")).toThrow();
  expect(selectorsOf('sum by (a, b) (rate(x{c=~"d|e"}[$__rate_interval]))')).toEqual([
    {
      metric: "x",
      matchers: [{ label: "c", operator: "=~", value: "d|e" }],
      groupedBy: ["a", "b"],
      functions: ["rate"],
    },
  ]);
});

test("every metric is used by a panel or an alert, or is listed with a reason", () => {
  const queried = new Set(expressions.flatMap(([, text]) => selectorsOf(text).map(({ metric }) => metric)));
  const families = new Set(samples.map(({ name }) => name.replace(/_(bucket|sum|count)$/, "")));
  const unasked = [...families].filter((name) => ![...queried].some((metric) => metric.startsWith(name)));
  // The variable of the dashboard is filled from it.
  expect(unasked).toEqual(["roomd_info"]);
});

describe("alerts", () => {
  test.each(alerts as Json[])("$alert is complete", ({ alert, for: lasting, labels, annotations }) => {
    expect(alert).toMatch(/^Roomd[A-Z]\w+$/);
    expect(lasting).toMatch(/^\d+[mh]$/);
    expect(["critical", "warning", "info"]).toContain(labels.severity);
    expect(Object.keys(annotations)).toEqual(["summary", "description", "runbook"]);
    expect(annotations.summary).toContain("{{ $labels.instance }}");
    expect(annotations.description).toMatch(/\.$/);
  });

  test("have unique names, and docs/operations.md explains each at its link", () => {
    const names = alerts.map(({ alert }: Json) => alert);
    expect(new Set(names).size).toBe(names.length);
    const sections = pageAt("docs/operations.md").text.split(/^#+ /m).slice(1);
    const documented = alerts.map(({ alert, annotations }: Json) => {
      const [path, anchor] = annotations.runbook.split("#");
      const section = sections.find((text) => text.split("\n")[0]?.toLowerCase().replaceAll(" ", "-") === anchor);
      return [alert, path, section?.includes(`| \`${alert}\``) ?? false];
    });
    expect(documented).toEqual(names.map((name: string) => [name, "docs/operations.md", true]));
  });
});

describe("the dashboard", () => {
  test("is valid for Grafana: a schema version, a uid, and no database ID", () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36);
    expect(dashboard).toMatchObject({ id: null, uid: "roomd", title: "roomd", editable: true });
    expect(dashboard.time).toEqual({ from: expect.stringMatching(/^now-/), to: "now" });
  });

  test("uses the data source of its variable everywhere, and hosts the other", () => {
    expect(variables.map(({ name, type }) => [name, type])).toEqual([
      ["datasource", "datasource"],
      ["instance", "query"],
    ]);
    const own = { type: "prometheus", uid: `\${datasource}` };
    for (const { datasource, targets } of drawn) {
      expect([datasource, ...targets.map((target: Json) => target.datasource)]).toEqual(
        Array(targets.length + 1).fill(own),
      );
      for (const { expr } of targets) expect(expr).toContain('instance=~"$instance"');
    }
    expect(
      samples.some(({ name }) => name === /label_values\((\w+), instance\)/.exec(variables[1]?.definition)?.[1]),
    ).toBe(true);
  });

  test("has panels of known types with IDs, titles and units, whose targets have unique names", () => {
    const ids = panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(panels.map(({ type }) => type))).toEqual(new Set(["row", "stat", "timeseries", "state-timeline"]));
    for (const { title, fieldConfig, targets } of drawn) {
      expect(title).not.toBe("");
      expect(fieldConfig.defaults.unit, title).toMatch(/^\w+$/);
      const names = targets.map(({ refId }: Json) => refId);
      expect(names, title).toEqual([..."ABCDEFGH"].slice(0, names.length));
    }
  });

  test("has panels on a grid of 24 columns, without overlaps", () => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of panels) {
      const { x, y, w, h } = gridPos;
      expect(x + w, title).toBeLessThanOrEqual(24);
      for (let column = x; column < x + w; column++) {
        for (let line = y; line < y + h; line++) {
          const place = `${column} ${line}`;
          expect(taken.get(place), `${title} over ${taken.get(place)}`).toBeUndefined();
          taken.set(place, title);
        }
      }
    }
  });
});
