# A worker: the checkout with its pinned, hashed requirements.
FROM python:3.13-slim-trixie

WORKDIR /app
COPY requirements/runtime.txt requirements/
RUN pip install --no-cache-dir --no-compile --require-hashes -r requirements/runtime.txt

COPY agentmem agentmem
COPY workflows workflows
COPY activities activities
COPY worker.py .

RUN useradd --create-home worker && install -d -o worker /data
USER worker
ENV AGENTMEM_DATA=/data PYTHONUNBUFFERED=1

CMD ["python", "worker.py"]
