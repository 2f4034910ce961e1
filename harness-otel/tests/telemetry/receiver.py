"""Receives OTLP over HTTP and gRPC, and prints a line of JSON for each request.

receiver.py HTTP_PORT GRPC_PORT [CERTIFICATE KEY] (port 0: any; with the files, both with TLS)

The first line has the ports. The line `hold` on the standard input lets further requests wait for the
line `release`. At the end of the input it ends.
"""

import json
import ssl
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_grpc

KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"]
STATUSES = ["unset", "ok", "error"]
printing = threading.Lock()
open_gate = threading.Event()
open_gate.set()


def show(line):
    with printing:
        print(json.dumps(line), flush=True)


def value(it):
    kind = it.WhichOneof("value")
    if kind == "array_value":
        return [value(one) for one in it.array_value.values]
    return getattr(it, kind) if kind else None


def attributes(of):
    return {it.key: value(it.value) for it in of}


def of_span(span):
    return {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "kind": KINDS[span.kind],
        "status": STATUSES[span.status.code],
        "message": span.status.message,
        "attributes": attributes(span.attributes),
        "events": [[it.name, attributes(it.attributes)] for it in span.events],
        "links": [[it.trace_id.hex(), it.span_id.hex(), attributes(it.attributes)] for it in span.links],
    }


def receive(protocol, token, request):
    open_gate.wait()
    if isinstance(request, traces.ExportTraceServiceRequest):
        for resource in request.resource_spans:
            spans = [of_span(span) for scope in resource.scope_spans for span in scope.spans]
            show({"protocol": protocol, "token": token, "resource": attributes(resource.resource.attributes), "spans": spans})
        return traces.ExportTraceServiceResponse()
    for resource in request.resource_metrics:
        names = [metric.name for scope in resource.scope_metrics for metric in scope.metrics]
        show({"protocol": protocol, "token": token, "resource": attributes(resource.resource.attributes), "metrics": names})
    return metrics.ExportMetricsServiceResponse()


PATHS = {"/v1/traces": traces.ExportTraceServiceRequest, "/v1/metrics": metrics.ExportMetricsServiceRequest}


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = PATHS[self.path]()
        request.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
        body = receive("http", self.headers["authorization"], request).SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def receive_grpc(request, call):
    return receive("grpc", dict(call.invocation_metadata()).get("authorization"), request)


class Traces(traces_grpc.TraceServiceServicer):
    def Export(self, request, call):
        return receive_grpc(request, call)


class Metrics(metrics_grpc.MetricsServiceServicer):
    def Export(self, request, call):
        return receive_grpc(request, call)


def main(http_port, grpc_port, certificate=None, key=None):
    http = ThreadingHTTPServer(("127.0.0.1", http_port), Http)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        http.socket = context.wrap_socket(http.socket, server_side=True)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    traces_grpc.add_TraceServiceServicer_to_server(Traces(), server)
    metrics_grpc.add_MetricsServiceServicer_to_server(Metrics(), server)
    address = f"127.0.0.1:{grpc_port}"
    if certificate:
        files = [open(path, "rb").read() for path in (key, certificate)]
        grpc_port = server.add_secure_port(address, grpc.ssl_server_credentials([files]))
    else:
        grpc_port = server.add_insecure_port(address)
    server.start()
    show({"http": http.server_port, "grpc": grpc_port})
    for line in sys.stdin:
        if line.strip() == "hold":
            open_gate.clear()
        elif line.strip() == "release":
            open_gate.set()
        show({"did": line.strip()})
    server.stop(None).wait()


main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
