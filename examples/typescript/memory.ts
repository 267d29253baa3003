import type { components, paths } from "./schema.js";

type Method = "get" | "post" | "put" | "patch" | "delete";
type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : undefined;
type Answer<Op> = Op extends { responses: infer All } ? Json<All[keyof All & (200 | 201 | 202 | 204)]> : never;
type Part<Op, Name extends string> = Op extends { parameters: { [N in Name]?: infer Given } } ? Given : never;
type Body<Op> = Op extends { requestBody: infer Sent } ? Json<Sent> : undefined;
type Options<Op> = { path?: Part<Op, "path">; query?: Part<Op, "query">; body?: Body<Op> };
export type MemoryEvent = components["schemas"]["EventAnswer"];

export class Memory {
  constructor(private url: string, private key: string) {}

  async call<P extends keyof paths, M extends Method & keyof paths[P]>(
    method: M, path: P, options: Options<paths[P][M]> = {},
  ): Promise<Answer<paths[P][M]>> {
    const names = (options.path ?? {}) as Record<string, string>;
    const query = Object.entries(options.query ?? {}).map(([name, value]) => [name, String(value)]);
    const address = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
    const response = await this.fetch(`${address}?${new URLSearchParams(query)}`, {
      method: method.toUpperCase(), body: JSON.stringify(options.body), headers: { "Content-Type": "application/json" },
    });
    return JSON.parse((await response.text()) || "null"); // 204 has no body
  }

  /** Events after the one with this id, as they happen; start again with the last id when the stream ends. */
  async *events(after: string, types: string): AsyncGenerator<MemoryEvent> {
    const response = await this.fetch(`/v1/events?${new URLSearchParams({ after, types })}`, {
      headers: { Accept: "text/event-stream" },
    });
    let text = "";
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      const events = (text + piece).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const data = /^data: ?(.*)$/m.exec(event)?.[1];
        if (data) yield JSON.parse(data) as MemoryEvent;
      }
    }
  }

  private async fetch(address: string, init: { method?: string; body?: string; headers: Record<string, string> }) {
    const headers = { Authorization: `Bearer ${this.key}`, ...init.headers };
    const response = await fetch(this.url + address, { ...init, headers });
    if (!response.ok) throw new Error(`${address}: ${response.status} ${await response.text()}`);
    return response;
  }
}
